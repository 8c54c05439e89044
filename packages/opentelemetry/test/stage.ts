/** A memory broker behind the promise face, its spans recorded, and OpenTelemetry's context following promises. */
import { context } from "@opentelemetry/api"
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks"
import { MemoryBroker } from "@requeue/adapter-memory"
import type * as MemoryOptions from "@requeue/adapter-memory/Options"
import { connect, type Received, type Requeue } from "@requeue/core/promise"
import { setTimeout as sleep } from "node:timers/promises"
import { OpenTelemetry } from "../src/index.ts"
import * as Recorder from "./recorder.ts"

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())

export interface Stage extends AsyncDisposable {
  readonly requeue: Requeue
  readonly recorder: Recorder.Recorder
  /** The messages that the next handler got, in order. */
  readonly seen: ReadonlyArray<Received<any>>
  /** Consumes the queue `orders`; a handler that is not given does nothing. */
  readonly consume: (handler?: (message: Received<any>) => unknown, options?: ConsumeOptions) => Promise<void>
}

type ConsumeOptions = Parameters<Requeue["consume"]>[1]

/** Waits for a condition of this process. */
export const until = async (condition: () => boolean): Promise<void> => {
  const deadline = performance.now() + 60_000
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within a minute: ${String(condition)}`)
    await sleep(10)
  }
}

export const open = async (
  broker: MemoryOptions.Options = {},
  options: Omit<OpenTelemetry.Options, "tracerProvider"> = {},
  recorder = Recorder.make()
): Promise<Stage> => {
  const telemetry = OpenTelemetry.make({ ...options, tracerProvider: recorder.tracerProvider })
  const requeue = await connect(MemoryBroker.layer(broker), { telemetry, logLevel: "None" })
  const seen: Array<Received<any>> = []
  return {
    requeue,
    recorder,
    seen,
    consume: async (handler = () => {}, consumeOptions = {}) => {
      await requeue.consume("orders", consumeOptions, (message) => {
        seen.push(message)
        return handler(message)
      })
    },
    [Symbol.asyncDispose]: () => requeue.close()
  }
}
