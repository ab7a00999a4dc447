# SQL lives in .sql files and is compiled into the library.
#
# settle_embed_queries(<capability> <folder>): <folder>/sql/<dialect>/*.sql, each query introduced by a
# line `-- name: <identifier>`, becomes `settle::queries::<capability>::<identifier>` in the generated header
# `queries/<capability>.hpp`, and the names of its columns `<identifier>_columns::<column>`. If its columns differ
# between the dialects, the build stops; the header is replaced only by a whole one.
#
# settle_embed_migrations(<set> <folder>): <folder>/NNNN_name.sql, in order, become
# `settle::migrations::<set>` in `queries/migrations_<set>.hpp`.
set(SETTLE_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
set(SETTLE_GENERATED_HEADERS "")

function(settle_embed_queries capability folder)
  file(GLOB sqlite CONFIGURE_DEPENDS ${folder}/sql/sqlite/*.sql)
  file(GLOB postgres CONFIGURE_DEPENDS ${folder}/sql/postgres/*.sql)
  set(header ${SETTLE_GENERATED_DIR}/queries/${capability}.hpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_queries.awk)
  add_custom_command(
    OUTPUT ${header}
    COMMAND awk -v capability=${capability} -f ${script} ${sqlite} ${postgres} > ${header}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${header}.new ${header}
    DEPENDS ${script} ${sqlite} ${postgres}
    COMMENT "Embedding the queries of ${capability}" VERBATIM)
  set(SETTLE_GENERATED_HEADERS ${SETTLE_GENERATED_HEADERS} ${header} PARENT_SCOPE)
endfunction()

function(settle_embed_migrations set folder)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.sql)
  set(header ${SETTLE_GENERATED_DIR}/queries/migrations_${set}.hpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_migrations.awk)
  add_custom_command(
    OUTPUT ${header}
    COMMAND awk -v set=${set} -f ${script} ${files} > ${header}
    DEPENDS ${script} ${files}
    COMMENT "Embedding the migrations of ${set}" VERBATIM)
  set(SETTLE_GENERATED_HEADERS ${SETTLE_GENERATED_HEADERS} ${header} PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY ${SETTLE_GENERATED_DIR}/queries)
settle_embed_queries(sql ${PROJECT_SOURCE_DIR}/src/sql)
settle_embed_queries(outbox ${PROJECT_SOURCE_DIR}/src/outbox)
settle_embed_queries(consume ${PROJECT_SOURCE_DIR}/src/consume)
settle_embed_queries(dead_letter ${PROJECT_SOURCE_DIR}/src/dead_letter)
settle_embed_queries(once ${PROJECT_SOURCE_DIR}/src/once)
settle_embed_queries(webhook ${PROJECT_SOURCE_DIR}/src/webhook)
settle_embed_queries(lock ${PROJECT_SOURCE_DIR}/src/lock)
settle_embed_queries(guard ${PROJECT_SOURCE_DIR}/src/guard)
settle_embed_queries(quantity ${PROJECT_SOURCE_DIR}/src/quantity)
settle_embed_queries(saga ${PROJECT_SOURCE_DIR}/src/saga)
settle_embed_queries(verify ${PROJECT_SOURCE_DIR}/src/verify)
settle_embed_queries(doctor ${PROJECT_SOURCE_DIR}/src/doctor)
settle_embed_queries(broker ${PROJECT_SOURCE_DIR}/drivers/sqlite)
settle_embed_queries(inspect ${PROJECT_SOURCE_DIR}/src/inspect)
settle_embed_migrations(sqlite ${PROJECT_SOURCE_DIR}/migrations/sqlite)
settle_embed_migrations(postgres ${PROJECT_SOURCE_DIR}/migrations/postgres)
settle_embed_migrations(sqlite_broker ${PROJECT_SOURCE_DIR}/migrations/sqlite_broker)
add_custom_target(settle_queries DEPENDS ${SETTLE_GENERATED_HEADERS})
