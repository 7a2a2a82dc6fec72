// A program that does not refer to any symbol of the library.
int main() {}
