/**
 * A broker with leases, such as SQS: many processes poll it, received messages are hidden for a while, and each call has its own
 * answer.
 *
 * | unkindness | source |
 * | --- | --- |
 * | a receive counts, and hides its messages, though its answer is lost; so does a poll whose caller is dead | https://github.com/aws/aws-sdk-js/issues/2350 |
 * | a receive returns fewer messages than there are, and not in their order | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html |
 * | a message is delivered though its lease is not over | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html |
 * | a message that was deleted is redelivered | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html |
 * | a delete by a receipt that is not the last one succeeds, and does nothing | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html |
 * | a lease is not extended once it is over, nor beyond 12 hours after the receive, nor by a receipt that is not the last one, whatever the answer | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html |
 * | single entries of a batch fail | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api-actions.html |
 * | a message that was received too often is moved away by the next receive, and keeps its count there | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html |
 * | a delay is 15 minutes at most | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html |
 * | counts are wrong until nothing has happened for a minute | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html |
 */
import * as Store from "../world/Store.ts"
import type { World } from "../world/World.ts"
import * as Leases from "./Leases.ts"
import * as Receives from "./Receives.ts"

/** A message to store. `of` is the delivery that it is a copy of. */
export interface Sending {
  readonly parcel: Store.Parcel
  readonly seconds: number
  readonly of: number | undefined
}

/** How long a message is hidden from now. `isBack`: it returns to the queue, no consumer works on it. */
export interface Hiding {
  readonly handle: number
  readonly seconds: number
  readonly isBack: boolean
}

/** Why an entry of a batch was not done. */
type Refusal = "BodyTooLarge" | "Unroutable" | "AccessRefused" | "LeaseLost" | "Throttled" | "Unsupported"

/** The refusal of each entry of a batch, in order; `undefined` if it was done. */
export type Refusals = ReadonlyArray<Refusal | undefined>

/** Counts of a queue, none of them exact. */
export interface Counts {
  readonly ready: number
  readonly inFlight: number
  readonly delayed: number
}

/** The server, without the connection to it. */
export interface Server {
  /** Creates a queue. Of several redrives, the one with the highest count stays. */
  readonly declare: (queue: string, redrive: Receives.Redrive | undefined) => void
  /** Stores a message of a producer outside. */
  readonly publish: (queue: string, parcel: Store.Parcel, stored: () => void) => void
  readonly send: (process: string, queue: string, entries: ReadonlyArray<Sending>) => Refusals
  readonly receive: Receives.Receives["poll"]
  readonly remove: (process: string, handles: ReadonlyArray<number>, why: "settled" | "purged") => Refusals
  readonly hide: (process: string, entries: ReadonlyArray<Hiding>) => Refusals
  readonly counts: (queue: string) => Counts
  /** Ends the polls that wait. */
  readonly dropPolls: () => void
}

/** Limits of the server, in seconds. */
export const limits = { delay: 900, hidden: 43_200 }

/** Milliseconds without a change after which counts are right. */
const settling = 60_000

/** Does something for each entry of a batch. */
type Each = <E>(place: string, entries: ReadonlyArray<E>, act: (entry: E) => Refusal | undefined) => Refusals

/** A server without messages. */
export const make = (world: World): Server => {
  const redrives = new Map<string, Receives.Redrive>()
  const changedAt = new Map<string, number>()
  const store = Store.make(world, (queue) => {
    changedAt.set(queue, world.now())
    receives.serve(queue)
  })
  const leases = Leases.make(world, store)
  const receives = Receives.make(world, store, leases, (queue) => redrives.get(queue))

  const each: Each = (place, entries, act) =>
    entries.map((entry) => (world.fault("busy", `${place} entry`) ? "Throttled" : act(entry)))

  return {
    declare: (queue, redrive) => {
      const before = redrives.get(queue)?.maxReceiveCount ?? 0
      if (redrive !== undefined && redrive.maxReceiveCount > before) redrives.set(queue, redrive)
    },
    publish: (queue, parcel, stored) => {
      store.keep(queue, parcel, 0, { process: undefined, of: undefined })
      stored()
    },
    send: (process, queue, entries) =>
      each(`${process} send ${queue}`, entries, ({ of, parcel, seconds }) => {
        if (isWrong(world, process, seconds, limits.delay)) return "Unsupported"
        const refused = Store.refusal(world, queue, parcel)
        if (refused === undefined) store.keep(queue, parcel, seconds * 1000, { process, of })
        return refused
      }),
    receive: (poll, answer) =>
      receives.poll(poll, (messages) => {
        if (messages.length > 0) changedAt.set(poll.queue, world.now())
        answer(messages)
      }),
    ...settlements(world, store, leases, each),
    counts: (queue) => {
      const isSettled = world.now() - (changedAt.get(queue) ?? 0) >= settling
      const told = (count: number) =>
        isSettled ? count : Math.round(count * world.draw.between(`counts ${queue}`, 0.2, 1.5))
      const { delayed, ready } = store.counts(queue)
      const hidden = leases.hidden(queue)
      const back = hidden.filter(({ expiry }) => expiry === undefined).length
      return { ready: told(ready), inFlight: told(hidden.length), delayed: told(delayed - back) }
    },
    dropPolls: receives.drop
  }
}

/** Whether a client requests an invalid time: then the client has a defect. */
const isWrong = (world: World, process: string, seconds: number, limit: number): boolean => {
  const isRight = Number.isInteger(seconds) && seconds >= 0 && seconds <= limit
  if (!isRight) world.record({ _tag: "Defect", process, detail: `InvalidParameterValue: ${seconds} s` })
  return !isRight
}

/** The calls that name messages by their receipts. */
const settlements = (
  world: World,
  store: Store.Store,
  leases: Leases.Leases,
  each: Each
): Pick<Server, "hide" | "remove"> => {
  /** An outdated receipt: it is refused, or accepted without effect. */
  const outdated = (place: string): Refusal | undefined =>
    world.draw.chance(`${place} outdated`, 0.5) ? "LeaseLost" : undefined

  const hideOne = (place: string, { handle, isBack, seconds }: Hiding): Refusal | undefined => {
    const now = world.now()
    const message = leases.find(handle)
    if (message?.handle === undefined) return "LeaseLost"
    const { hiddenUntil, receivedAt } = message
    if (now >= hiddenUntil) return "LeaseLost"
    if (message.handle !== handle) return outdated(place)
    if (now + seconds * 1000 > receivedAt + limits.hidden * 1000) return "LeaseLost"
    if (isBack) leases.giveBack(message, seconds * 1000)
    else leases.extend(message, seconds * 1000)
    return undefined
  }

  const removeOne = (place: string, handle: number, why: "settled" | "purged"): Refusal | undefined => {
    const message = leases.find(handle)
    if (message?.handle === undefined) return undefined
    if (message.handle !== handle) return outdated(place)
    if (world.fault("echo", place)) return undefined
    leases.end(message.held)
    store.gone(message.held, why, handle)
    return undefined
  }

  return {
    remove: (process, handles, why) =>
      each(`${process} remove`, handles, (handle) => removeOne(`${process} remove`, handle, why)),
    hide: (process, entries) =>
      each(`${process} hide`, entries, (entry) =>
        isWrong(world, process, entry.seconds, limits.hidden) ? "Unsupported" : hideOne(`${process} hide`, entry)
      )
  }
}
