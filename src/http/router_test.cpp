#include <gtest/gtest.h>

#include <stdexcept>

#include "settle/error.hpp"
#include "settle/http.hpp"
#include "support/quiet_log.hpp"

namespace settle::http {
namespace {

handler says(const std::string& what) {
  return [what](const request& asked) {
    std::string body = what;
    for (const auto& one : asked.path_parameters) body += " " + one.name + "=" + one.value;
    return text(200, "text/plain", body);
  };
}

response ask(const router& of, const std::string& method, const std::string& target) {
  request asked;
  asked.method = method;
  asked.target = target;
  return of.handle(asked);
}

TEST(http_router, finds_routes_by_method_and_path) {
  router routes;
  routes.get("/orders", says("all")).post("/orders", says("new")).get("/orders/{id}", says("one"));
  routes.get("/orders/{id}/lines/{line}", says("line"))
      .del("/orders/{id}", says("gone"))
      .get("/", says("root"));
  EXPECT_EQ(ask(routes, "GET", "/orders?x=1").body, "all");
  EXPECT_EQ(ask(routes, "POST", "/orders").body, "new");
  EXPECT_EQ(ask(routes, "GET", "/orders/7").body, "one id=7");
  EXPECT_EQ(ask(routes, "DELETE", "/orders/7").body, "gone id=7");
  EXPECT_EQ(ask(routes, "GET", "/orders/7/lines/2").body, "line id=7 line=2");
  EXPECT_EQ(ask(routes, "GET", "/").body, "root");
  EXPECT_EQ(ask(routes, "GET", "http://shop.example/orders/7?a").body, "one id=7");
  for (const auto* target :
       {"http:///orders/7", "http://a@b/orders/7", "http://[x]/orders/7", "https://a:b/orders/7"})
    EXPECT_EQ(ask(routes, "GET", target).status, 400) << target;
  for (const auto* nowhere : {"/nowhere", "/orders/", "/orders/7/", "/orders/7/lines", "//", "/Orders"})
    EXPECT_EQ(ask(routes, "GET", nowhere).status, 404) << nowhere;
}

TEST(http_router, decodes_parameters_after_it_has_cut_the_path) {
  router routes;
  routes.get("/files/{name}", says("file")).get("/a b", says("space"));
  EXPECT_EQ(ask(routes, "GET", "/files/a%2Fb%20c").body, "file name=a/b c");
  EXPECT_EQ(ask(routes, "GET", "/a%20b").body, "space");
  EXPECT_EQ(ask(routes, "GET", "/%66iles/x").body, "file name=x");
  for (const auto* bad : {"/files/%", "/files/%zz", "/files/%00", "/files/..", "/files/%2e%2E", "/files/.",
                          "files/x", "*", "/files/x#y", ""})
    EXPECT_EQ(ask(routes, "GET", bad).status, 400) << bad;
}

TEST(http_router, prefers_literal_segments_in_whatever_order_they_were_added) {
  router routes;
  routes.get("/a/{x}", says("parameter")).get("/a/list", says("literal")).get("/{y}/list", says("other"));
  routes.get("/{y}/{z}", says("any"));
  EXPECT_EQ(ask(routes, "GET", "/a/list").body, "literal");
  EXPECT_EQ(ask(routes, "GET", "/a/%6cist").body, "literal");
  EXPECT_EQ(ask(routes, "GET", "/a/b").body, "parameter x=b");
  EXPECT_EQ(ask(routes, "GET", "/b/list").body, "other y=b");
  EXPECT_EQ(ask(routes, "GET", "/b/c").body, "any y=b z=c");
}

TEST(http_router, names_the_methods_that_a_path_has) {
  router routes;
  routes.post("/orders", says("new")).get("/orders", says("all"));
  const auto refused = ask(routes, "PUT", "/orders");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.headers.find("Allow"), "GET, HEAD, POST");
  EXPECT_EQ(ask(routes, "HEAD", "/orders").body, "all") << "the server drops the body";
  EXPECT_EQ(ask(routes, "get", "/orders").status, 405) << "methods are what they are";
}

TEST(http_router, refuses_patterns_that_make_no_sense) {
  const auto refuses = [](const auto& add) {
    router routes;
    routes.get("/a/{x}", says(""));
    try {
      add(routes);
    } catch (const error& e) {
      return e.code() == errc::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(refuses([](router& r) { r.get("a", says("")); }));
  EXPECT_TRUE(refuses([](router& r) { r.get("/a/{x}", says("")); }));
  EXPECT_TRUE(refuses([](router& r) { r.post("/a/{y}", says("")); }));
  EXPECT_TRUE(refuses([](router& r) { r.get("/a{x}", says("")); }));
  EXPECT_TRUE(refuses([](router& r) { r.get("/{x}/{x}", says("")); }));
  EXPECT_TRUE(refuses([](router& r) { r.get("/a?b", says("")); }));
  EXPECT_TRUE(refuses([](router& r) { r.add("G T", "/b", says("")); }));
  EXPECT_FALSE(refuses([](router& r) { r.post("/a/{x}", says("")); }));
}

TEST(http_router, wraps_the_routes_that_follow_a_middleware) {
  const auto marks = [](const std::string& mark) -> middleware {
    return [mark](handler next) -> handler {
      return [mark, next](const request& asked) {
        auto answer = next(asked);
        answer.body = mark + "(" + answer.body + ")";
        return answer;
      };
    };
  };
  router routes;
  routes.get("/bare", says("x"));
  routes.use(marks("outer")).use(marks("inner")).get("/wrapped", says("x"));
  EXPECT_EQ(ask(routes, "GET", "/bare").body, "x");
  EXPECT_EQ(ask(routes, "GET", "/wrapped").body, "outer(inner(x))");
}

TEST(http_router, turns_what_a_handler_throws_into_an_answer_that_tells_no_secrets) {
  router routes;
  routes.get("/busy", [](const request&) -> response { throw error(errc::store_busy, "secret"); });
  routes.get("/bug", [](const request&) -> response { throw std::runtime_error("secret"); });
  routes.get("/odd", [](const request&) -> response { throw 7; });
  test::quiet_log log;
  environment env;
  env.log = &log;
  const auto get = [&](const char* path) { return routes.handle({.method = "GET", .target = path}, env); };
  EXPECT_EQ(get("/busy").status, 503);
  EXPECT_EQ(get("/busy").headers.find("Retry-After"), "1");
  EXPECT_NE(get("/busy").body.find("\"store_busy\""), std::string::npos);
  EXPECT_EQ(get("/bug").status, 500);
  EXPECT_EQ(get("/odd").status, 500);
  for (const auto* path : {"/busy", "/bug"}) EXPECT_EQ(get(path).body.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace settle::http
