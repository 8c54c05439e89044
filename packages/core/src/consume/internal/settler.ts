/**
 * Hands settlements to the broker: once per delivery, gathered where the broker settles in batches, and never while a
 * lease extension of the same delivery is under way.
 */
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { SettleFailure, SettleRequest, Subscription } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { Watch } from "../../observe/Telemetry.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"
import type { Item } from "./item.ts"

export interface Settler {
  readonly settle: (item: Item, settlement: Settlement) => void
  /** Hands over what has gathered. */
  readonly flush: () => void
  /** Extends the leases of every item that is not being settled. */
  readonly extend: (items: Iterable<Item>) => void
  /** True when nothing is under way. */
  readonly isIdle: () => boolean
}

/** An item whose settlement is decided asks for it itself. */
type Decided = Item & SettleRequest

export const make = (env: {
  /** The broker's name, for errors. */
  readonly broker: string
  readonly subscription: Subscription
  readonly fork: (effect: Effect.Effect<unknown, unknown>) => Fiber.Fiber<unknown, unknown>
  readonly timers: Timers
  readonly batch: number
  readonly wait: number
  readonly watch: Watch | undefined
  readonly onSettled: (item: Item, settlement: Settlement) => void
  readonly onFailed: (item: Item, settlement: Settlement, error: BrokerError) => void
  readonly onLeaseLost: (item: Item, error: BrokerError) => void
  /** Called after the last of those of one call. */
  readonly onAnswered: () => void
  /** The broker has not answered at once. */
  readonly onWaiting: (items: ReadonlyArray<Decided>) => void
}): Settler => {
  let pending: Array<Decided> = []
  let extending = false
  let underWay = 0
  let timer: ReturnType<Timers["after"]> | undefined

  /** A call that was cut off answers nothing; one that died in the adapter failed for every delivery. */
  const call = (
    concerned: ReadonlyArray<{ readonly delivery: Delivery }>,
    effect: Effect.Effect<ReadonlyArray<SettleFailure>>,
    done: (failures: ReadonlyArray<SettleFailure> | undefined) => void
  ): void => {
    env.fork(effect).addObserver((exit) => {
      if (Exit.isSuccess(exit)) return done(exit.value as ReadonlyArray<SettleFailure>)
      if (Cause.hasInterruptsOnly(exit.cause)) return done(undefined)
      const error = new BrokerError({
        broker: env.broker,
        operation: "settle",
        reason: "Unsupported",
        detail: `the adapter died: ${Cause.pretty(exit.cause)}`,
        remedy: "Report this to the adapter's authors"
      })
      done(concerned.map(({ delivery }) => ({ delivery, error })))
    })
  }

  const flush = (): void => {
    env.timers.cancel(timer)
    timer = undefined
    if (extending || pending.length === 0) return
    const requests = pending
    pending = []
    let isAnswered = false
    underWay++
    const settled = env.subscription.settle(requests)
    call(requests, env.watch === undefined ? settled : env.watch.settle(requests, settled), (failures) => {
      underWay--
      isAnswered = true
      // An interrupted settle was cut off by the consumer's own end: the broker brings the deliveries back.
      if (failures !== undefined) report(requests, failures)
    })
    if (!isAnswered) env.onWaiting(requests)
  }

  const report = (requests: ReadonlyArray<Decided>, failures: ReadonlyArray<SettleFailure>): void => {
    const failed = new Map(failures.map(({ delivery, error }) => [delivery, error]))
    for (const item of requests) {
      const error = failed.get(item.delivery)
      if (error === undefined) env.onSettled(item, item.settlement)
      else env.onFailed(item, item.settlement, error)
    }
    env.onAnswered()
  }

  return {
    settle: (item, settlement) => {
      item.settlement = settlement
      pending.push(item as Decided)
      if (pending.length >= env.batch && env.batch > 1) flush()
      else if (env.wait > 0) timer ??= env.timers.after(env.wait, flush)
    },
    flush,
    extend: (items) => {
      const unsettled = [...items].filter(({ settlement }) => settlement === undefined)
      if (extending || unsettled.length === 0) return
      extending = true
      call(unsettled, env.subscription.extend(unsettled.map(({ delivery }) => delivery)), (failures = []) => {
        extending = false
        for (const { delivery, error } of failures) {
          const item = unsettled.find((each) => each.delivery === delivery)
          if (item !== undefined) env.onLeaseLost(item, error)
        }
        flush()
      })
    },
    isIdle: () => pending.length === 0 && underWay === 0 && !extending
  }
}
