/** The cost of telemetry: OpenTelemetry with several exporters, and core without its calls of telemetry. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as MemoryBroker from "@requeue/adapter-memory/MemoryBroker"
import { connect } from "@requeue/core/promise"
import { OpenTelemetry } from "@requeue/opentelemetry"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  InMemorySpanExporter,
  type SpanExporter
} from "@opentelemetry/sdk-trace-base"
import { build, stop } from "esbuild"
import type { Workload } from "../../Contender.ts"
import * as PromiseFace from "../promiseFace.ts"
import type * as Jobs from "./jobs.ts"
import * as Hooks from "./telemetryHooks.ts"

/** Takes spans and drops them. */
const nowhere = (): SpanExporter => {
  const empty = new InMemorySpanExporter()
  return { export: (_, done) => empty.export([], done), shutdown: () => empty.shutdown() }
}

/** Milliseconds after which spans in memory are dropped, to keep their growth out of the measurement. */
const dropEvery = 500

const dropping = <E extends { readonly reset: () => void }>(exporter: E): E => {
  setInterval(() => exporter.reset(), dropEvery).unref()
  return exporter
}

const tracing = (exporter: SpanExporter) => ({
  tracerProvider: new BasicTracerProvider({
    spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 1_000_000, scheduledDelayMillis: 100 })]
  })
})

const metering = () => {
  const exporter = dropping(new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE))
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: dropEvery })
  return { meterProvider: new MeterProvider({ readers: [reader] }) }
}

/** By the job's name for it. `api` is OpenTelemetry's API without an SDK, which does nothing. */
const kinds: Readonly<Record<Jobs.Watched["telemetry"], () => Partial<Parameters<typeof connect>[1]>>> = {
  none: () => ({}),
  api: () => ({ telemetry: OpenTelemetry.make() }),
  metrics: () => ({ telemetry: OpenTelemetry.make(metering()) }),
  traces: () => ({ telemetry: OpenTelemetry.make(tracing(nowhere())) }),
  both: () => ({ telemetry: OpenTelemetry.make({ ...tracing(nowhere()), ...metering() }) }),
  memory: () => ({
    telemetry: OpenTelemetry.make({ ...tracing(dropping(new InMemorySpanExporter())), ...metering() })
  })
}

/** Sends all messages, and consumes them at the same time. */
export const both: Workload<Jobs.Watched> = async ({ inFlight, telemetry, ...work }, meter) => {
  await using requeue = await connect(MemoryBroker.layer(), kinds[telemetry]())
  const queue = PromiseFace.bytesOf("work")
  const body = new Uint8Array(256)
  let left = work.messages + work.warmUp
  await requeue.consume(queue, { concurrency: inFlight }, async () => meter.tick())
  const line = async (): Promise<void> => {
    while (left-- > 0) await requeue.send(queue, body)
  }
  await Promise.all(Array.from({ length: inFlight }, line))
  await meter.done
}

/** The work of `both` without telemetry, from newly bundled sources: unchanged, or without the calls of telemetry. */
export const bundled: Workload<Jobs.Bundled> = async ({ isWithout, ...job }, meter) => {
  const source = new URL("../../../src/contenders/memory/requeue.ts", import.meta.url)
  const { outputFiles } = await build({
    entryPoints: [source.pathname],
    conditions: ["@requeue/source"],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    plugins: isWithout ? [Hooks.removal] : []
  })
  await stop()
  const folder = mkdtempSync(join(tmpdir(), "requeue-bench-"))
  try {
    const file = join(folder, "bundle.mjs")
    writeFileSync(file, outputFiles[0]!.contents)
    const { single } = (await import(pathToFileURL(file).href)) as { readonly single: Workload<Jobs.Memory> }
    await single(job, meter)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
