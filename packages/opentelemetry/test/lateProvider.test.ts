/** A global meter provider that the program registers after it has made the telemetry, as SDKs that start later do. */
import { metrics } from "@opentelemetry/api"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { assert, onTestFinished, test } from "vitest"
import * as Stage from "./stage.ts"

const registered = () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  return {
    register: () => {
      metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
      onTestFinished(() => metrics.disable())
    },
    names: async () => {
      await reader.forceFlush()
      const found = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      return found.filter(({ dataPoints }) => dataPoints.length > 0).map(({ descriptor }) => descriptor.name)
    }
  }
}

const expected = [
  "messaging.client.sent.messages",
  "messaging.client.consumed.messages",
  "messaging.process.duration",
  "requeue.settlements",
  "requeue.consumers"
]

test("counts what happens after the registration, also of a consumer that runs already", async () => {
  const { names, register } = registered()
  await using stage = await Stage.open()
  await stage.consume()
  await stage.requeue.send("orders", 1)
  await Stage.until(() => stage.seen.length === 1)
  register()
  await stage.requeue.send("orders", 2)
  await Stage.until(() => stage.seen.length === 2)
  const worker = await stage.requeue.consume("other", {}, () => {})
  await worker.drain()
  assert.includeMembers(await names(), expected)
})

test("is not asked for again when it was given", async () => {
  const { names, register } = registered()
  await using stage = await Stage.open({}, { meterProvider: metrics.getMeterProvider() })
  register()
  await stage.consume()
  await stage.requeue.send("orders", 1)
  await Stage.until(() => stage.seen.length === 1)
  assert.deepStrictEqual(await names(), [])
})
