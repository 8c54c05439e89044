/** Parts of Prisma that have no types: its generated clients import them. */
declare module "@prisma/client/runtime/query_compiler_fast_bg.postgresql.mjs"

declare module "@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64.mjs" {
  export const wasm: string
}
