import { entries } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("memory")

const suite = { byDefault: true, venue: undefined, rounds: 5 } as const

export const telemetryOff: Suite = {
  ...suite,
  name: "telemetry-off",
  summary: "the memory suite's messages through code as it is, and through the same without its calls of telemetry",
  cases: (size) => [
    {
      name: "consume",
      messages: size(1_000_000),
      warmUp: size(200_000),
      job: { concurrency: 64 },
      entries: [
        of("bundled", "telemetry", "without", { isWithout: true }),
        of("bundled", "telemetry", "off", { isWithout: false })
      ]
    }
  ]
}

export const telemetry: Suite = {
  ...suite,
  name: "telemetry",
  summary: "what OpenTelemetry adds to each of 100,000 messages that are sent and handled",
  cases: (size) => [
    {
      name: "send and handle",
      messages: size(100_000),
      warmUp: size(30_000),
      job: { inFlight: 64 },
      entries: [
        of("both", "telemetry", "none", { telemetry: "none" }),
        of("both", "telemetry", "API without an SDK", { telemetry: "api" }),
        of("both", "telemetry", "metrics", { telemetry: "metrics" }),
        of("both", "telemetry", "traces, dropped", { telemetry: "traces" }),
        of("both", "telemetry", "traces, dropped, and metrics", { telemetry: "both" }),
        of("both", "telemetry", "traces, in memory, and metrics", { telemetry: "memory" })
      ]
    }
  ]
}
