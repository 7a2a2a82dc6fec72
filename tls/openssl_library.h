// OpenSSL, loaded when TLS is first needed. Warren's programs and libraries therefore also run on machines
// without OpenSSL, and a process that has already loaded libssl.so.3, as Python may, uses that copy.
#pragma once

// OpenSSL 3.5 deprecates BIO_meth_get_*; 3.0 has no alternative.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

// All functions of OpenSSL that are used. Those that OpenSSL's headers wrap in macros are listed under their
// real names.
#define WARREN_OPENSSL_FUNCTIONS(F)        \
  F(TLS_method)                            \
  F(SSL_CTX_new)                           \
  F(SSL_CTX_free)                          \
  F(SSL_CTX_ctrl)                          \
  F(SSL_CTX_set_options)                   \
  F(SSL_clear_options)                     \
  F(SSL_CTX_set_ciphersuites)              \
  F(SSL_CTX_set_num_tickets)               \
  F(SSL_set_default_read_buffer_len)       \
  F(SSL_set_verify)                        \
  F(SSL_CTX_set_psk_use_session_callback)  \
  F(SSL_CTX_set_default_verify_paths)      \
  F(SSL_CTX_load_verify_file)              \
  F(SSL_CTX_set_psk_find_session_callback) \
  F(SSL_new)                               \
  F(SSL_free)                              \
  F(SSL_ctrl)                              \
  F(SSL_set1_host)                         \
  F(SSL_get_verify_result)                 \
  F(X509_verify_cert_error_string)         \
  F(SSL_set_ex_data)                       \
  F(SSL_get_ex_data)                       \
  F(SSL_set_bio)                           \
  F(SSL_get_wbio)                          \
  F(SSL_set_connect_state)                 \
  F(SSL_set_accept_state)                  \
  F(SSL_do_handshake)                      \
  F(SSL_session_reused)                    \
  F(SSL_read_ex)                           \
  F(SSL_write_ex)                          \
  F(SSL_has_pending)                       \
  F(SSL_key_update)                        \
  F(SSL_get_error)                         \
  F(SSL_SESSION_new)                       \
  F(SSL_SESSION_free)                      \
  F(SSL_SESSION_set1_master_key)           \
  F(SSL_SESSION_set_cipher)                \
  F(SSL_SESSION_set_protocol_version)      \
  F(SSL_CIPHER_find)                       \
  F(BIO_s_socket)                          \
  F(BIO_meth_new)                          \
  F(BIO_meth_set_write)                    \
  F(BIO_meth_get_write)                    \
  F(BIO_meth_set_read)                     \
  F(BIO_meth_set_ctrl)                     \
  F(BIO_meth_get_ctrl)                     \
  F(BIO_meth_set_create)                   \
  F(BIO_meth_get_create)                   \
  F(BIO_meth_set_destroy)                  \
  F(BIO_meth_get_destroy)                  \
  F(BIO_new)                               \
  F(BIO_ctrl)                              \
  F(BIO_int_ctrl)                          \
  F(BIO_get_ex_data)                       \
  F(BIO_set_ex_data)                       \
  F(BIO_set_flags)                         \
  F(BIO_clear_flags)                       \
  F(ERR_clear_error)                       \
  F(ERR_peek_error)                        \
  F(ERR_reason_error_string)

namespace warren::tls {

struct OpenSsl {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name cannot be put in parentheses.
#define WARREN_DECLARE(name) decltype(&::name) name = nullptr;
  WARREN_OPENSSL_FUNCTIONS(WARREN_DECLARE)
#undef WARREN_DECLARE
};

/// Returns the functions of OpenSSL. The first call loads it; it is never unloaded. If loading failed, every
/// call throws std::runtime_error, whose message names the missing file or function and the package that
/// contains OpenSSL.
const OpenSsl& LoadOpenSsl();

}  // namespace warren::tls
