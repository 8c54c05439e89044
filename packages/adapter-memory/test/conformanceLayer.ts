/** The memory broker with a harness that looks behind its port. */
import { Harness, WithStore } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { MemoryBroker, MemoryTransaction, type Options } from "../src/index.ts"

const alone = (options: Options.Options) =>
  Layer.effectContext(
    Effect.map(MemoryBroker.makeControlled({ maxBodySize: 1024 * 1024, ...options }), ({ broker, control }) => {
      let queues = 0
      const harness = Harness.Harness.of({
        name: "memory",
        uniqueQueue: (base) => Effect.sync(() => `${base}-${++queues}`),
        publishRaw: control.publishRaw,
        deadLetters: (queue) => Effect.map(control.snapshot(queue), ({ ready }) => ready),
        pending: (queue) =>
          Effect.map(control.snapshot(queue), ({ delayed, inFlight, ready }) => ({
            ready: ready.length,
            inFlight: inFlight.length,
            delayed: delayed.length
          })),
        cutConnections: control.cut,
        restart: control.restart,
        // It lives in this process, and there is nothing below it that could fail.
        another: undefined,
        failNext: undefined,
        deleteQueue: undefined,
        foreignQueue: undefined,
        // A crash of the program ends the broker and its messages.
        crash: undefined,
        powerCut: undefined,
        transactions: WithStore.memoryTransactions(MemoryTransaction.make),
        lateness: 0,
        settleTime: 0
      })
      return Context.make(Broker.Broker, broker).pipe(Context.add(Harness.Harness, harness))
    })
  )

/** A memory broker; with `store`, another one is beside it. */
export const layer = ({ store = false, ...options }: Options.Options & { readonly store?: boolean } = {}) =>
  store
    ? WithStore.layer(alone(options), WithStore.inMemory(MemoryBroker.layer(), MemoryTransaction.make))
    : alone(options)
