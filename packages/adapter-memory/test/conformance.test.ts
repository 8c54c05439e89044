import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import type { Options } from "../src/index.ts"
import { layer } from "./conformanceLayer.ts"

const conforms = (name: string, options: Options.Options = {}) =>
  Suite.register({ describe, test, afterAll }, { name, layer: layer(options), virtualTime: true })

conforms("memory")

// As badly equipped as real brokers, so that the cases for what holds without a capability run as well.
conforms("memory like SQS", {
  vices: {
    countReleases: true,
    lease: { duration: 2000, max: 43_200_000 },
    forgetDelaysOnRestart: true,
    overCountOnLoss: true,
    capabilities: {
      delayResolution: 1000,
      exactCounts: false,
      headers: false,
      historyOnRetry: false,
      ordered: false,
      peek: false,
      counts: { ready: true, inFlight: true, delayed: false },
      retryDelay: { native: 43_200_000, beyond: undefined },
      sendDelay: { native: 900_000, beyond: undefined },
      settleBatch: 10,
      settleWait: 5
    }
  }
})

conforms("memory like a durable broker", {
  vices: { capabilities: { durableDelays: true, durableMessages: true, delayResolution: 20 } }
})
