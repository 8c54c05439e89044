/** A broker that does nothing, and cases about it: what the suite's own tests run. */
import { Broker } from "@requeue/core"
import { type Capabilities } from "@requeue/core/port"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Case } from "../src/Case.ts"
import { CheckFailed } from "../src/Check.ts"
import { Harness } from "../src/Harness.ts"
import { NotMeasurable } from "../src/Lateness.ts"

const capabilities: Capabilities.Capabilities = {
  broker: "fake",
  retryDelay: { native: 1000, beyond: undefined },
  sendDelay: { native: 1000, beyond: undefined },
  delayResolution: 1,
  durableDelays: false,
  durableMessages: false,
  uncountedRelease: true,
  headers: true,
  historyOnRetry: true,
  maxBodySize: Number.POSITIVE_INFINITY,
  connectionBound: true,
  lease: undefined,
  ordered: true,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: true, delayed: false },
  exactCounts: true,
  uncountedBrowse: false,
  transactions: true,
  inbox: true,
  keyedOrder: true,
  fairShares: true,
  parkedKeys: true
}

export const broker: Broker.Service = {
  capabilities,
  connection: () => ({ state: "up", since: 0 }),
  publish: () => Effect.void,
  publishWithin: () => Effect.void,
  subscribe: () =>
    Effect.succeed({
      credit: () => {},
      settle: () => Effect.succeed([]),
      extend: () => Effect.succeed([]),
      ackWithin: () => Effect.succeed([]),
      identify: () => undefined
    }),
  admin: {
    counts: () => Effect.succeed({ ready: 0, inFlight: 0, delayed: undefined }),
    browse: () => Effect.die("nothing browses here"),
    purge: () => Effect.succeed(0)
  }
}

export const harness = Harness.of({
  name: "fake",
  uniqueQueue: (base) => Effect.succeed(base),
  publishRaw: () => Effect.void,
  deadLetters: () => Effect.succeed([]),
  pending: broker.admin.counts,
  cutConnections: undefined,
  restart: Effect.void,
  crash: undefined,
  powerCut: undefined,
  another: undefined,
  failNext: undefined,
  deleteQueue: undefined,
  foreignQueue: undefined,
  transactions: {
    begin: Effect.succeed({
      value: undefined,
      write: () => Effect.void,
      commit: Effect.void,
      rollback: Effect.void
    }),
    rows: Effect.succeed([])
  },
  lateness: 0,
  settleTime: 0
})

export const layer: Layer.Layer<Broker.Broker | Harness> = Layer.succeedContext(
  Context.make(Broker.Broker, broker).pipe(Context.add(Harness, harness))
)

const make = (name: string, run: Case["run"], requires?: Case["requires"]): Case => ({
  group: "group",
  name,
  run,
  ...(requires && { requires })
})

export const passes = make("passes", Effect.sleep("2 seconds"))
export const fails = make("fails", Effect.fail(new CheckFailed("seen 1", 1, 2)))
export const dies = make("dies", Effect.die(new Error("defect")))
export const hangs = make("hangs", Effect.never)
export const lacks = make("lacks", Effect.die(new Error("was run")), () => "a thing")

/** Its ruler fails so often. */
export const unmeasurable = (times: number): Case => {
  let left = times
  const reading = { what: "a retry", late: 80, bound: 10, control: 70 }
  const run = Effect.suspend(() => (left-- > 0 ? Effect.fail(new NotMeasurable([reading])) : Effect.void))
  return make(`unmeasurable ${times} times`, run)
}
