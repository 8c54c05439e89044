/**
 * Receipt handles of delivered messages, and the times at which their leases end.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
 */
import { invalidParameter, named, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"

/** The longest lease, in milliseconds from the receipt. */
const longest = 43_200_000

interface Lease {
  readonly queue: string
  /** The handle of the server behind. */
  readonly handle: string
  readonly received: number
  until: number
  deleted: boolean
  /** Whether its end was changed. */
  changed: boolean
  /** Ends with the last call about this lease. */
  turn: Promise<unknown>
}

export type Leases = ReturnType<typeof make>

/**
 * No leases yet.
 *
 * Long, because all functions share the same leases.
 */
export const make = (now: () => number) => {
  const leases = new Map<string, Lease>()
  const held = new Map<string, Set<Lease>>()
  /** The last lease of each message, by its queue and id. */
  const last = new Map<string, Lease>()
  const heldOf = (queue: string): Set<Lease> => {
    const found = held.get(queue) ?? new Set()
    held.set(queue, found)
    return found
  }
  const invalid = (name: string, value: string | number, reason: string): AwsError =>
    invalidParameter(`Value ${value} for parameter ${name} is invalid. Reason: ${reason}`)

  const isOver = ({ until }: Lease): boolean => until <= now()

  const give = (handle: string, queue: string, visible: number, behind: string): Lease => {
    const received = now()
    const until = received + visible * 1000
    const lease = { queue, handle: behind, received, until, deleted: false, changed: false, turn: Promise.resolve() }
    leases.set(handle, lease)
    heldOf(queue).add(lease)
    return lease
  }

  return {
    /**
     * Records that the server behind has delivered a message; `visible` is in seconds. An earlier lease of the message is over,
     * even if it ends later by this clock: the server's began before its answer arrived here.
     */
    delivered: (messageId: string, handle: string, queue: string, visible: number): void => {
      const before = last.get(`${queue} ${messageId}`)
      if (before !== undefined) before.until = Math.min(before.until, now())
      last.set(`${queue} ${messageId}`, give(handle, queue, visible, handle))
    },
    /** Records the lease of a copy of a delivery, which the server behind knows by another handle. */
    give,
    inFlight: (queue: string): number => {
      const mine = heldOf(queue)
      const at = now()
      for (const lease of mine) if (lease.deleted || lease.until <= at) mine.delete(lease)
      return mine.size
    },
    /** The lease of a handle, which may have ended. */
    find: (handle: string): Lease | undefined => leases.get(handle),
    /** Returns the handle of the server behind. */
    behind: (handle: string): string => leases.get(handle)?.handle ?? handle,
    /**
     * Makes a call about entries when all earlier calls about any of them have ended: of concurrent calls, the server behind may
     * do the second one first.
     */
    inTurn: <A>(entries: ReadonlyArray<Call.Entry>, ask: () => Promise<A>): Promise<A> => {
      const concerned = entries.flatMap(({ ReceiptHandle = "" }) => leases.get(ReceiptHandle) ?? [])
      const asked = Promise.allSettled(concerned.map(({ turn }) => turn)).then(ask)
      for (const lease of concerned) lease.turn = asked
      return asked
    },
    /**
     * Whether AWS reports a call as done though the server behind may reject it: a second delete, and a change of visibility by
     * the old handle of a redelivered message.
     */
    isDone: (call: Call.Call, { ReceiptHandle = "" }: Call.Entry): boolean => {
      const lease = leases.get(ReceiptHandle)
      if (lease === undefined) return false
      return Call.single(call) === "DeleteMessage" ? lease.deleted : !Call.isFifo(call) && isOver(lease)
    },
    /** Returns why AWS rejects the receipt handle; `undefined` if it does not. */
    refused: (call: Call.Call, { ReceiptHandle = "", VisibilityTimeout = 0 }: Call.Entry): AwsError | undefined => {
      const lease = leases.get(ReceiptHandle)
      if (lease === undefined || lease.queue !== call.queue) {
        const message = `The input receipt handle "${ReceiptHandle}" is not a valid receipt handle.`
        return { ...named("ReceiptHandleIsInvalid"), message }
      }
      // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html
      const deletes = Call.single(call) === "DeleteMessage"
      if (lease.deleted) {
        const reason = "Message does not exist or is not available for visibility timeout change."
        return deletes ? undefined : invalid("ReceiptHandle", ReceiptHandle, reason)
      }
      if (Call.isFifo(call) && isOver(lease)) {
        return invalid("ReceiptHandle", ReceiptHandle, "The receipt handle has expired.")
      }
      if (!deletes && now() + VisibilityTimeout * 1000 > lease.received + longest) {
        const reason = "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
        return invalid("VisibilityTimeout", VisibilityTimeout, reason)
      }
      return undefined
    },
    /** Records that the server did a call. */
    done: (call: Call.Call, { ReceiptHandle = "", VisibilityTimeout = 0 }: Call.Entry): void => {
      const lease = leases.get(ReceiptHandle)
      if (lease === undefined) return
      if (Call.single(call) === "DeleteMessage") lease.deleted = true
      else {
        lease.changed = true
        if (!isOver(lease)) lease.until = now() + VisibilityTimeout * 1000
      }
    }
  }
}
