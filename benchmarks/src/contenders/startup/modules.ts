/** The cost of loading a module, and its size in a bundle. */
import { brotliCompressSync, gzipSync } from "node:zlib"
import { build } from "esbuild"
import type { Workload } from "../../Contender.ts"

interface Loading {
  readonly module: string
}

/** From the first byte read to the last statement run; the process is fresh, the system's file cache is not. */
export const load: Workload<Loading> = async ({ module }, meter) => {
  const began = performance.now()
  await import(module)
  meter.figure("import, ms", performance.now() - began)
  meter.tick()
}

/** From the first byte read until messages can be sent and consumed, without a server. */
export const connected: Workload<{ readonly address: string }> = async ({ address }, meter) => {
  const began = performance.now()
  const { connect } = await import("@requeue/core/promise")
  const requeue = await connect(address)
  meter.figure("until ready, ms", performance.now() - began)
  await requeue.close()
  meter.tick()
}

/** From the first byte read until Lambda can call the function. */
export const lambda: Workload<{ readonly address: string }> = async ({ address }, meter) => {
  const began = performance.now()
  const { SqsLambda } = await import("@requeue/adapter-sqs/lambda")
  SqsLambda.handler("orders", { sqs: { url: address } }, () => {})
  meter.figure("until ready, ms", performance.now() - began)
  meter.tick()
}

/** Of everything that the module exports, minified, with its imports. */
export const bundle: Workload<Loading> = async ({ module }, meter) => {
  const { outputFiles } = await build({
    stdin: { contents: `export * from ${JSON.stringify(module)}`, resolveDir: import.meta.dirname },
    bundle: true,
    minify: true,
    write: false,
    platform: "node",
    format: "esm"
  })
  const code = outputFiles[0]!.contents
  meter.figure("minified, kB", code.length / 1000)
  meter.figure("gzip, kB", gzipSync(code).length / 1000)
  meter.figure("brotli, kB", brotliCompressSync(code).length / 1000)
  meter.tick()
}
