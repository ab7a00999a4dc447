// An authority and certificates of its own, for servers and clients of TLS in tests.
#pragma once

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace settle::test {

class own_authority {
 public:
  own_authority()
      : key_(new_key()), certificate_(certify(key_.get(), "settle test authority", {}, nullptr)) {}

  // What clients trust.
  void write_to(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr || PEM_write_X509(file, certificate_.get()) != 1)
      throw std::runtime_error("cannot write " + path);
    std::fclose(file);
  }

  // A server that proves to be `names`: "DNS:localhost,IP:127.0.0.1".
  std::shared_ptr<SSL_CTX> server(const std::string& names) const {
    const auto key = new_key();
    const auto certificate = certify(key.get(), "server", names, this);
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    SSL_CTX_use_certificate(context.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
    return context;
  }

 private:
  using key_pointer = std::shared_ptr<EVP_PKEY>;
  using certificate_pointer = std::shared_ptr<X509>;

  static key_pointer new_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

  static void extend(X509* made, X509* by, int which, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, by, made, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str());
    X509_add_ext(made, extension, -1);
    X509_EXTENSION_free(extension);
  }

  static certificate_pointer certify(EVP_PKEY* key, const char* name, const std::string& names,
                                     const own_authority* by) {
    certificate_pointer made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), by == nullptr ? 1 : 2);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 24 * 3600);
    X509_set_pubkey(made.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509* issuer = by == nullptr ? made.get() : by->certificate_.get();
    X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
    if (by == nullptr)
      extend(made.get(), issuer, NID_basic_constraints, "critical,CA:TRUE");
    else
      extend(made.get(), issuer, NID_subject_alt_name, names);
    X509_sign(made.get(), by == nullptr ? key : by->key_.get(), EVP_sha256());
    return made;
  }

  key_pointer key_;
  certificate_pointer certificate_;
};

}  // namespace settle::test
