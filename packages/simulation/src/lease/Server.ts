/**
 * A broker with leases, as SQS is: many processes poll it, what they receive is hidden for a while, and each call has its
 * own answer.
 *
 * | unkindness | source |
 * | --- | --- |
 * | a receive counts, and hides what it brought, though its answer is lost; so does a poll whose caller is dead | https://github.com/aws/aws-sdk-js/issues/2350 |
 * | a receive brings fewer messages than there are, and not in their order | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html |
 * | a message is handed out though its lease is not over | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html |
 * | a message that was deleted comes again | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html |
 * | a delete by a receipt that is not the last one succeeds, and does nothing | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html |
 * | a lease that is over is not extended, whatever is answered; 12 hours after the receive none is | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html |
 * | single entries of a batch fail | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api-actions.html |
 * | a message that was received too often is moved away by the next receive, and keeps its count there | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html |
 * | a delay has 15 minutes at most | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html |
 * | counts are wrong until nothing has happened for a minute | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html |
 */
import { epoch } from "../world/Machine.ts"
import * as Store from "../world/Store.ts"
import type { Due, World } from "../world/World.ts"

/** A message that was received. */
export interface Received {
  /** The receipt, another one for each receive. */
  readonly handle: number
  /** The broker's own name of the copy. */
  readonly messageId: string
  readonly parcel: Store.Parcel
  /** How often it was received, this time included. */
  readonly count: number
  /** Milliseconds since the epoch. */
  readonly sentAt: number
  readonly movedFrom: string | undefined
}

/** A message to store. `of` is the delivery that it is a copy of. */
export interface Sending {
  readonly parcel: Store.Parcel
  readonly seconds: number
  readonly of: number | undefined
}

/** What a receipt's lease is to be from now. `isBack`: the message goes back to the queue, it is not worked on. */
export interface Hiding {
  readonly handle: number
  readonly seconds: number
  readonly isBack: boolean
}

/** A poll. */
export interface Poll {
  readonly process: string
  readonly queue: string
  /** The most messages. */
  readonly count: number
  /** Milliseconds for which the messages are hidden. */
  readonly lease: number
  /** Milliseconds that it waits for a message. */
  readonly wait: number
}

/** Why an entry of a batch was not done. */
export type Refusal = "BodyTooLarge" | "Unroutable" | "AccessRefused" | "LeaseLost" | "Throttled" | "Unsupported"

/** The refusal of each entry of a batch, in order; `undefined` where it was done. */
export type Refusals = ReadonlyArray<Refusal | undefined>

/** Counts of a queue, none of them exact. */
export interface Counts {
  readonly ready: number
  readonly inFlight: number
  readonly delayed: number
}

/** The server, without the way to it. */
export interface Server {
  /** Makes a queue, which moves what is received more than so often to another one. */
  readonly declare: (queue: string, redrive: Redrive | undefined) => void
  /** Stores a message of a producer outside. */
  readonly publish: (queue: string, parcel: Store.Parcel, stored: () => void) => void
  readonly send: (process: string, queue: string, entries: ReadonlyArray<Sending>) => Refusals
  readonly receive: (poll: Poll, answer: (messages: ReadonlyArray<Received>) => void) => void
  readonly remove: (process: string, handles: ReadonlyArray<number>, why: "settled" | "purged") => Refusals
  readonly hide: (process: string, entries: ReadonlyArray<Hiding>) => Refusals
  readonly counts: (queue: string) => Counts
  /** Ends the polls that wait. */
  readonly dropPolls: () => void
}

/** Where a queue moves messages that were received too often. */
export interface Redrive {
  readonly to: string
  readonly maxReceiveCount: number
}

/** A copy that was received. */
interface Message {
  readonly held: Store.Held
  /** The last receipt; `undefined` once it has left its queue. */
  handle: number | undefined
  receivedAt: number
  /** Until when it is hidden. */
  hiddenUntil: number
  /** The end of its lease, while it is worked on. */
  expiry: Due | undefined
}

interface Waiting extends Poll {
  readonly answer: (messages: ReadonlyArray<Received>) => void
  readonly end: Due
}

/** Limits of the server, in seconds. */
export const limits = { delay: 900, hidden: 43_200 }

/** Milliseconds without a change after which counts are right. */
const settling = 60_000

/** A server without messages. */
export const make = (world: World): Server => {
  const { draw } = world
  const redrives = new Map<string, Redrive>()
  const messages = new Map<Store.Held, Message>()
  const receipts = new Map<number, Message>()
  const changedAt = new Map<string, number>()
  let polls: Array<Waiting> = []

  const changed = (queue: string): void => void changedAt.set(queue, world.now())

  const store = Store.make(world, (queue) => {
    changed(queue)
    serve(queue)
  })

  /** Answers polls as long as there are messages for them. */
  const serve = (queue: string): void => {
    for (;;) {
      const fits = polls.filter((poll) => poll.queue === queue)
      if (fits.length === 0 || store.counts(queue).ready === 0) return
      const poll = fits[Math.floor(draw.unit(`serve ${queue}`) * fits.length)]!
      const found = sample(poll)
      if (found.length > 0) reply(poll, found)
    }
  }

  const reply = (poll: Waiting, found: ReadonlyArray<Received>): void => {
    polls = polls.filter((each) => each !== poll)
    poll.end.run = undefined
    poll.answer(found)
  }

  /** Some of the messages that are ready, in any order. */
  const sample = (poll: Poll): ReadonlyArray<Received> => {
    const { count, process, queue } = poll
    const place = `${process} receive ${queue}`
    const wanted = Math.ceil(draw.unit(place) * Math.min(count, store.counts(queue).ready))
    const found: Array<Received> = []
    for (let nth = 0; nth < wanted; nth++) {
      const held = store.take(queue, Math.floor(draw.unit(place) * store.counts(queue).ready))!
      const redrive = redrives.get(queue)
      if (redrive === undefined || held.count < redrive.maxReceiveCount) found.push(hand(poll, held))
      else leave(held, () => store.move(held, redrive.to, held.count))
    }
    return found
  }

  const hand = ({ lease, process }: Poll, held: Store.Held): Received => {
    const handle = store.handOut(held, process)
    const message: Message = messages.get(held) ?? { held, handle, receivedAt: 0, hiddenUntil: 0, expiry: undefined }
    message.handle = handle
    message.receivedAt = world.now()
    messages.set(held, message)
    receipts.set(handle, message)
    keep(message, lease)
    changed(held.queue)
    const { copy, count, movedFrom, parcel, storedAt } = held
    return { handle, messageId: `sqs${copy}`, parcel, count, sentAt: epoch + Math.floor(storedAt), movedFrom }
  }

  /** Hides a message for so many milliseconds from now. */
  const hide = (message: Message, millis: number): void => {
    if (message.expiry !== undefined) message.expiry.run = undefined
    message.expiry = undefined
    message.hiddenUntil = world.now() + millis
  }

  /** Hides one that is being worked on. */
  const keep = (message: Message, lease: number): void => {
    hide(message, lease)
    message.expiry = world.after(lease, () => {
      message.expiry = undefined
      store.back(message.held, message.handle!, 0, "lease")
    })
  }

  /** A copy leaves its queue for good. */
  const leave = (held: Store.Held, go: () => void): void => {
    const message = messages.get(held)
    messages.delete(held)
    if (message !== undefined) {
      hide(message, 0)
      message.handle = undefined
    }
    changed(held.queue)
    store.withdraw(held)
    go()
  }

  /** One that is in flight, handed out as if it were not. */
  const echo = (poll: Poll): ReadonlyArray<Received> => {
    const { process, queue } = poll
    const inFlight = [...messages.values()].filter(({ expiry, held }) => expiry !== undefined && held.queue === queue)
    if (inFlight.length === 0 || !world.fault("echo", `${process} receive ${queue}`)) return []
    return [hand(poll, inFlight[Math.floor(draw.unit(`${process} echo`) * inFlight.length)]!.held)]
  }

  /** Does something for each entry of a batch. */
  const each = <E>(place: string, entries: ReadonlyArray<E>, act: (entry: E) => Refusal | undefined): Refusals =>
    entries.map((entry) => (world.fault("busy", `${place} entry`) ? "Throttled" : act(entry)))

  /** A receipt that is worth nothing any more: it is refused, or taken for good. */
  const outdated = (place: string): Refusal | undefined =>
    draw.chance(`${place} outdated`, 0.5) ? "LeaseLost" : undefined

  const hideOne = (place: string, { handle, isBack, seconds }: Hiding): Refusal | undefined => {
    const now = world.now()
    const message = receipts.get(handle)
    if (message?.handle === undefined) return "LeaseLost"
    const { held, hiddenUntil, receivedAt } = message
    if (message.handle !== handle || now >= hiddenUntil) return outdated(place)
    if (now + seconds * 1000 > receivedAt + limits.hidden * 1000) return "LeaseLost"
    store.withdraw(held)
    if (isBack) {
      hide(message, seconds * 1000)
      store.back(held, handle, seconds * 1000, "asked")
    } else keep(message, seconds * 1000)
    return undefined
  }

  const wrong = (process: string, seconds: number, limit: number): boolean => {
    const isRight = Number.isInteger(seconds) && seconds >= 0 && seconds <= limit
    if (!isRight) world.record({ _tag: "Defect", process, detail: `InvalidParameterValue: ${seconds} s` })
    return !isRight
  }

  return {
    declare: (queue, redrive) => {
      const before = redrives.get(queue)
      if (redrive === undefined) return
      redrives.set(queue, {
        ...redrive,
        maxReceiveCount: Math.max(redrive.maxReceiveCount, before?.maxReceiveCount ?? 0)
      })
    },
    publish: (queue, parcel, stored) => {
      store.keep(queue, parcel, 0, { process: undefined, of: undefined })
      stored()
    },
    send: (process, queue, entries) =>
      each(`${process} send ${queue}`, entries, ({ of, parcel, seconds }) => {
        if (wrong(process, seconds, limits.delay)) return "Unsupported"
        const refused = Store.refusal(world, queue, parcel)
        if (refused === undefined) store.keep(queue, parcel, seconds * 1000, { process, of })
        return refused
      }),
    receive: (poll, answer) => {
      const again = echo(poll)
      if (again.length > 0) return answer(again)
      const waiting: Waiting = { ...poll, answer, end: world.after(poll.wait, () => reply(waiting, [])) }
      polls.push(waiting)
      serve(poll.queue)
    },
    remove: (process, handles, why) =>
      each(`${process} remove`, handles, (handle) => {
        const message = receipts.get(handle)
        if (message?.handle === undefined) return undefined
        if (message.handle !== handle) return outdated(`${process} remove`)
        if (world.fault("echo", `${process} remove`)) return undefined
        leave(message.held, () => store.gone(message.held, why, handle))
        return undefined
      }),
    hide: (process, entries) =>
      each(`${process} hide`, entries, (entry) =>
        wrong(process, entry.seconds, limits.hidden) ? "Unsupported" : hideOne(`${process} hide`, entry)
      ),
    counts: (queue) => {
      const isSettled = world.now() - (changedAt.get(queue) ?? 0) >= settling
      const told = (count: number) =>
        isSettled ? count : Math.round(count * draw.between(`counts ${queue}`, 0.2, 1.5))
      const { delayed, ready } = store.counts(queue)
      const hidden = [...messages.values()].filter(
        ({ held, hiddenUntil }) => held.queue === queue && hiddenUntil > world.now()
      )
      const back = hidden.filter(({ expiry }) => expiry === undefined).length
      return { ready: told(ready), inFlight: told(hidden.length), delayed: told(delayed - back) }
    },
    dropPolls: () => {
      for (const { end } of polls) end.run = undefined
      polls = []
    }
  }
}
