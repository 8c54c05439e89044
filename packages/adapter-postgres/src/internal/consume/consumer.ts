/** A consumer: leases messages while it has credit, and sleeps until more may be ready. MUST 5 and 8. */
import type { Broker, BrokerError, Delivery, Timers } from "@requeue/core/port"
import type { SqlMessage } from "@requeue/kit"
import * as Pace from "../connect/pace.ts"
import type { Store } from "../connect/store.ts"
import * as Claims from "./claims.ts"
import { deliver, type Receipt } from "./receipt.ts"

/** Maximum number of messages in one claim. */
const maxClaim = 500

export interface Consumer {
  readonly credit: (limit: number) => void
  /** The deliveries that use credit: they are not settled, and their leases have not ended. */
  readonly held: Set<Receipt>
  /** Leases more, if there is credit. */
  readonly refill: () => void
  /** Stops. `done` is called when no claim runs any more; deliveries stay held. */
  readonly close: (done: () => void) => void
}

interface Options extends Pick<Broker.SubscribeOptions, "queue" | "onDelivery" | "shareLimits"> {
  readonly store: Store
  /** Called when an attempt to lease messages has failed, or has succeeded. */
  readonly onOutcome: (error: BrokerError.BrokerError | undefined) => void
}

const none: Claims.Claimed = { rows: [], hasMore: false }

// Long, because its functions share the credit.
export const make = ({ onDelivery, onOutcome, queue, shareLimits, store }: Options): Consumer => {
  const { gather, lanes, onWake, settings, timers } = store
  const held = new Set<Receipt>()
  const claims = Claims.make({ queue, shareLimits, store })
  let limit = 0
  let isOpen = true
  let onClosed = (): void => undefined
  let isClaiming = false
  /** Whether messages may have become ready since the running claim began. */
  let isStale = false
  let timer: Timers.Timer | undefined
  /** No lease of a held delivery ends before, in monotonic milliseconds. */
  let firstEnd = Number.POSITIVE_INFINITY

  /** Free credit that one claim can use. */
  const wanted = (): number => Math.min(maxClaim, limit - held.size)

  /** The credit counts when the statement begins: settlements that end together free theirs one by one. */
  const lease = gather<void, Claims.Claimed>(lanes.claim, 0, async (session) => {
    const size = wanted()
    return [size <= 0 ? none : await claims.claim(session, size)]
  })

  const next = gather<void, number>(lanes.claim, 0, async (session) => [await claims.next(session)])

  /** Frees the credit of deliveries whose leases have ended: another consumer may have the messages. */
  const forgetLost = (time: number): void => {
    if (time < firstEnd) return
    firstEnd = Number.POSITIVE_INFINITY
    for (const receipt of held) {
      if (receipt.until <= time) held.delete(receipt)
      else firstEnd = Math.min(firstEnd, receipt.until)
    }
  }

  const sleep = (millis: number): void => {
    timers.cancel(timer)
    if (isOpen) timer = timers.after(Math.max(0, Math.min(millis, Pace.shortest)), refill)
  }

  const refill = (): void => {
    isStale = true
    if (!isClaiming && isOpen) claim()
  }

  const wake = (): void => {
    if (held.size < limit) refill()
  }

  const accept = (rows: ReadonlyArray<SqlMessage.Row>, until: number): void => {
    const leased: ReadonlyArray<Delivery.Delivery & { readonly receipt: Receipt }> = rows.map((row) =>
      deliver(row, until, store)
    )
    for (const { receipt } of leased) held.add(receipt)
    if (leased.length > 0) firstEnd = Math.min(firstEnd, until)
    for (const delivery of leased) {
      if (!isOpen) return
      delivery.receipt.isSeen = true
      onDelivery(delivery)
    }
  }

  const claim = (): void => {
    const began = timers.now()
    forgetLost(began)
    if (wanted() <= 0) return sleep(Number.POSITIVE_INFINITY)
    isClaiming = true
    isStale = false
    lease(undefined, 1, { operation: "receive", queue }, (error, { hasMore, rows } = none) => {
      isClaiming = false
      onOutcome(error)
      accept(rows, began + settings.lease)
      if (!isOpen) return onClosed()
      if (error !== undefined) return sleep(Number.POSITIVE_INFINITY)
      // Without credit, the end of a lease frees some.
      sleep(Number.POSITIVE_INFINITY)
      if (hasMore || isStale) return wake()
      isClaiming = true
      next(undefined, 1, { operation: "receive", queue }, (_, due = Number.POSITIVE_INFINITY) => {
        isClaiming = false
        if (!isOpen) return onClosed()
        sleep(due)
        if (isStale) wake()
      })
    })
  }

  const unlisten = onWake(queue, (from) => {
    claims.lower(from)
    wake()
  })

  return {
    held,
    refill: wake,
    credit: (credit) => {
      limit = isOpen ? credit : 0
      wake()
    },
    close: (done) => {
      isOpen = false
      limit = 0
      unlisten()
      timers.cancel(timer)
      if (isClaiming) onClosed = done
      else done()
    }
  }
}
