/** A consumer: leases messages while it has credit, and sleeps until there can be more. MUST 5 and 8. */
import type { Broker, BrokerError, Delivery, Timers } from "@requeue/core/port"
import type { Store } from "../connect/store.ts"
import * as Rows from "../rows.ts"
import { deliver, type Receipt } from "./receipt.ts"
import * as Shares from "./shares.ts"

/** The most messages of one transaction. */
const maxClaim = 100

/** The pause after a failed attempt, in milliseconds. */
const pause = 1000

export interface Consumer {
  readonly credit: (limit: number) => void
  /** The deliveries that are not settled. Only the job that settles or loses one removes it. */
  readonly held: Set<Receipt>
  /** Leases more in the transaction of the settlements before it, which free credit. */
  readonly refill: () => void
  /** Wakes the other consumers of the process that wait for a place in a share. */
  readonly freePlaces: () => void
  /** Stops, and returns what it holds to the queue. */
  readonly close: (done: () => void) => void
}

interface Options extends Pick<Broker.SubscribeOptions, "queue" | "onDelivery" | "shareLimits"> {
  readonly store: Store
  /** Called when an attempt to lease messages has failed, or has succeeded. */
  readonly onOutcome: (error: BrokerError.BrokerError | undefined) => void
}

type Leased = Delivery.Delivery & { readonly receipt: Receipt }

// Long, because its functions share the credit.
export const make = ({ onDelivery, onOutcome, queue, shareLimits, store }: Options): Consumer => {
  const { add, leaseEnd, nextToken, now, onWake, timers } = store
  const held = new Set<Receipt>()
  let limit = 0
  let isOpen = true
  let isClaiming = false
  /** Whether more may have come since the running attempt began. */
  let isStale = false
  let [timer, timerEnd]: [Timers.Timer | undefined, number] = [undefined, 0]
  /** No lease of a held delivery ends before, in epoch milliseconds. */
  let firstEnd = Number.POSITIVE_INFINITY
  let round = Shares.first
  /** Whether messages wait for a place in their shares. */
  let isHeldUp = false

  /** Forgets deliveries whose leases have ended: another consumer may have the messages. */
  const forgetLost = (time: number): void => {
    if (time < firstEnd) return
    firstEnd = Number.POSITIVE_INFINITY
    for (const receipt of held) {
      if (receipt.until <= time) held.delete(receipt)
      else firstEnd = Math.min(firstEnd, receipt.until)
    }
  }

  const refill = (): void => {
    if (!isOpen || limit === 0) return
    isStale = true
    if (!isClaiming) claim()
  }

  const hasCredit = (): boolean => held.size < limit

  const wake = (): void => {
    if (hasCredit()) refill()
  }

  const timeOut = (): void => {
    timer = undefined
    refill()
  }

  /** Tries again at a time, in epoch milliseconds, or before: a timer for each attempt would cost more. */
  const sleep = (until: number): void => {
    if (timer !== undefined && timerEnd <= until) return
    timers.cancel(timer)
    timerEnd = until
    timer = until === Number.POSITIVE_INFINITY ? undefined : timers.after(Math.max(0, until - now()), timeOut)
  }

  const claim = (): void => {
    isClaiming = true
    if (isStale) [round, isHeldUp, isStale] = [Shares.after(round.last), false, false]
    let [leased, wanted]: [ReadonlyArray<Leased>, number] = [[], 0]
    let claimed: Shares.Claimed | undefined
    let next = Number.POSITIVE_INFINITY
    add({
      operation: "receive",
      queue,
      weight: Math.min(maxClaim, limit),
      // It also uses the credit of settlements that are added in this turn, so these need one commit instead of two.
      isLast: true,
      run: (connection) => {
        // Those of an earlier run, which was rolled back.
        for (const { receipt } of leased) held.delete(receipt)
        leased = []
        claimed = undefined
        const time = now()
        forgetLost(time)
        next = firstEnd
        wanted = Math.min(maxClaim, limit - held.size)
        if (wanted <= 0) return
        Rows.declare(connection, queue)
        const until = leaseEnd()
        const options = { queue, now: time, until, token: nextToken(), limit: wanted, counts: true }
        claimed = Shares.claim(connection, options, round, shareLimits)
        leased = claimed.rows.map((row) => deliver(row, until, store))
        for (const { receipt } of leased) held.add(receipt)
        if (leased.length > 0) firstEnd = Math.min(firstEnd, until)
        if (leased.length < wanted) next = Math.min(Rows.nextTime(connection, queue, time), claimed.opens)
        else next = firstEnd
      },
      end: (error) => {
        isClaiming = false
        if (error !== undefined) for (const { receipt } of leased) held.delete(receipt)
        onOutcome(error)
        if (error !== undefined) return sleep(now() + pause)
        sleep(next)
        if (claimed !== undefined) [round, isHeldUp] = [claimed.round, isHeldUp || claimed.isHeldUp]
        for (const delivery of leased) if (isOpen) onDelivery(delivery)
        if (isStale || (leased.length > 0 && leased.length === wanted)) wake()
        else if (claimed?.isWhole === false && isOpen && !isClaiming) claim()
      }
    })
  }

  const sleeper = { wake, hasCredit, isHeldUp: () => isHeldUp }
  const unlisten = onWake(queue, sleeper)

  return {
    held,
    refill,
    freePlaces: () => store.wake(queue, (other) => other !== sleeper && other.isHeldUp()),
    credit: (credit) => {
      const wasNone = limit === 0
      limit = isOpen ? credit : 0
      // Without credit, the timer woke nothing, and settlements that wait for the lock asked for nothing.
      if (wasNone) refill()
      else wake()
    },
    close: (done) => {
      isOpen = false
      limit = 0
      unlisten()
      timers.cancel(timer)
      add({
        operation: "unsubscribe",
        queue,
        weight: held.size,
        run: (connection) => {
          for (const receipt of held) Rows.giveBack(connection, receipt, 0)
        },
        end: () => {
          held.clear()
          store.wake(queue)
          done()
        }
      })
    }
  }
}
