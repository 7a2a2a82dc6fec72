// A fast path of warren.rabit's allreduce, for arrays that need no conversion; rabit.py handles all others. A
// ctypes call takes more than a microsecond, a large share of the time of a small allreduce on one host.
// Uses the CPython 3.11 stable ABI, so one file serves that version and all later ones.
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <rabit/c_api.h>

#include <climits>
#include <cstddef>
#include <optional>
#include <string_view>

namespace {

struct State {
  PyTypeObject* array_type = nullptr;  // numpy.ndarray
};

constexpr int kBitOr = 3;

/** Returns RabitAllreduce's code for the type that a format of Python's `struct` module describes (`l` is
 * long, `q` is long long, `e` is float16); nullopt if RabitAllreduce has no such type. */
std::optional<int> TypeNumber(const char* format) {
  constexpr std::string_view kFormats = "bBiIlLfdqQe";
  if (format == nullptr || format[0] == '\0' || format[1] != '\0') {
    return std::nullopt;
  }
  const std::size_t at = kFormats.find(format[0]);
  return at == std::string_view::npos ? std::nullopt : std::optional(static_cast<int>(at));
}

bool IsFloating(int type_number) {
  return type_number == RABIT_FLOAT || type_number == RABIT_DOUBLE || type_number == RABIT_FLOAT16;
}

/** allreduce(data, op) -> bool. Reduces in place and returns True if `data` is a numpy.ndarray (not a
 * subclass), non-empty, contiguous, aligned and writeable, its type is one of RabitAllreduce's, and `op` is
 * valid for that type; otherwise does nothing and returns False. Raises RuntimeError if the reduction fails.
 * Releases the GIL during the reduction. */
PyObject* Allreduce(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "allreduce takes an array and an operation");
    return nullptr;
  }
  const auto* state = static_cast<const State*>(PyModule_GetState(module));
  if (Py_TYPE(arguments[0]) != state->array_type) {
    Py_RETURN_FALSE;
  }
  const long op = PyLong_AsLong(arguments[1]);
  if (op == -1 && PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  Py_buffer buffer;
  if (PyObject_GetBuffer(arguments[0], &buffer, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE | PyBUF_FORMAT) != 0) {
    // Not contiguous, read-only, or of a type without a format: rabit.py handles it or reports the error.
    PyErr_Clear();
    Py_RETURN_FALSE;
  }
  const std::optional<int> type_number = TypeNumber(buffer.format);
  const bool can = type_number && buffer.len > 0 && op >= 0 && op <= kBitOr &&
                   !(op == kBitOr && IsFloating(*type_number)) &&
                   reinterpret_cast<std::size_t>(buffer.buf) % static_cast<std::size_t>(buffer.itemsize) == 0;
  int result = 0;
  if (can) {
    Py_BEGIN_ALLOW_THREADS;
    result = RabitTryAllreduce(buffer.buf, static_cast<std::size_t>(buffer.len / buffer.itemsize),
                               *type_number, static_cast<int>(op), nullptr, nullptr);
    Py_END_ALLOW_THREADS;
  }
  PyBuffer_Release(&buffer);
  if (result != 0) {
    PyErr_SetString(PyExc_RuntimeError, RabitGetLastError());
    return nullptr;
  }
  return PyBool_FromLong(can);
}

int Start(PyObject* module) {
  PyObject* numpy = PyImport_ImportModule("numpy");
  if (numpy == nullptr) {
    return -1;
  }
  auto* state = static_cast<State*>(PyModule_GetState(module));
  state->array_type = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(numpy, "ndarray"));
  Py_DECREF(numpy);
  return state->array_type == nullptr ? -1 : 0;
}

}  // namespace

PyMODINIT_FUNC PyInit_warren_allreduce() {
  static PyMethodDef functions[] = {
      {"allreduce", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Allreduce)), METH_FASTCALL,
       "allreduce(data, op): whether data was reduced, in place; False, and nothing done, when it is not ready for that"},
      {nullptr, nullptr, 0, nullptr}};
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(Start)}, {0, nullptr}};
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "_allreduce",
                                   nullptr,
                                   sizeof(State),
                                   functions,
                                   slots,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  return PyModuleDef_Init(&definition);
}
