/**
 * Publishes with confirmation, on a separate connection. A server that blocks publishers stops reading from their connections, and
 * acknowledgements must not wait for that. https://www.rabbitmq.com/docs/connection-blocked
 */
import { BrokerError, Deadlines, Delay, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Publication } from "../client.ts"
import type { Connection, Live } from "../connect/connection.ts"
import { timedOut, unconnected, unreached } from "../connect/request.ts"
import * as Confirms from "./confirms.ts"
import * as InFlight from "./inFlight.ts"
import * as Lane from "./lane.ts"

/** Unconfirmed bytes from which the next publication waits. A slow connection must transmit them within `publishTimeout`. */
const maxBytes = 16 * 1024 * 1024

/** The most channels, besides the one for bodies that may be too large. */
const maxLanes = 64

/** Publishes messages, up to a limit of unconfirmed ones. */
export interface Publisher {
  /** Opens the channel of an exchange before its first publication. */
  readonly open: (exchange: string) => void
  /**
   * Publishes when the limit of unconfirmed messages and the connection allow it. From then on, the wait for a connection and the
   * wait for the confirmation may each take `publishTimeout`.
   */
  readonly submit: (publication: Publication, onOutcome: Confirms.OnOutcome) => Submission
  /** Cancels a submission: `onOutcome` is not called, and a message that is not written yet is never written. */
  readonly withdraw: (submission: Submission) => void
  /** The error for a message that is cancelled before it was written: the server's alarm if there is one, else `detail`. */
  readonly unwritten: (queue: string, detail: string) => BrokerError.BrokerError
}

/** A publication, until its outcome is known. A class, because there is an object for every message. */
export class Submission implements Deadlines.Deadline {
  at = Number.POSITIVE_INFINITY
  place = -1
  /** Set when the publication was written. */
  written: Confirms.Written | undefined = undefined
  hasEnded = false
  parkedIn: Set<Submission> | undefined = undefined
  readonly publication: Publication
  onOutcome: Confirms.OnOutcome
  readonly owner: { readonly late: (submission: Submission) => void }

  constructor(publication: Publication, onOutcome: Confirms.OnOutcome, owner: Submission["owner"]) {
    this.publication = publication
    this.onOutcome = onOutcome
    this.owner = owner
  }

  pass(): void {
    this.owner.late(this)
  }
}

const failed = (queue: string, reason: BrokerError.Reason, detail: string, remedy?: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "rabbitmq", operation: "publish", queue, reason, detail, remedy })

const closed = ({ queue }: Publication): BrokerError.BrokerError =>
  failed(queue, "ConnectionFailed", "the broker was closed")

const alarmOf = (blockedBy: string): string => `the server blocks publishers: ${blockedBy}`
const alarmRemedy = "Check the server's alarms for memory and disk"

/** The error for a message that was not written: the alarm of a server that blocks publishers, else `detail`. */
const unwritten = (queue: string, live: Live | undefined, detail: string, remedy?: string): BrokerError.BrokerError => {
  const blockedBy = live?.blockedBy()
  return blockedBy === undefined
    ? failed(queue, "ConnectionFailed", detail, remedy)
    : failed(queue, "Throttled", alarmOf(blockedBy), alarmRemedy)
}

/** The error for a submission that waited for `timeout` milliseconds. */
const late = (
  { publication, written }: Submission,
  connection: Connection,
  timeout: number
): BrokerError.BrokerError => {
  const { queue } = publication
  if (written === undefined) {
    const live = connection.current()
    const { detail, remedy } =
      live === undefined
        ? unconnected(timeout, "publishTimeout", connection.error())
        : { detail: `no channel within ${Delay.format(timeout)}`, remedy: unreached("publishTimeout") }
    return unwritten(queue, live, detail, remedy)
  }
  const error = timedOut({ operation: "publish", queue }, timeout, "publishTimeout")
  const blockedBy = written.channel.live.blockedBy()
  return blockedBy === undefined
    ? error
    : failed(queue, error.reason, `${error.detail}; ${alarmOf(blockedBy)}`, alarmRemedy)
}

/** Makes a publisher. When its scope closes, every submission fails. */
export const make = (connection: Connection, settings: Settings): Effect.Effect<Publisher, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { maxUnconfirmed: maxItems, publishTimeout, requestTimeout } = settings
    // Made first, so its channels close after the consumers of the same scope have ended.
    const scope = yield* Scope.fork(yield* Effect.scope)
    const run = Effect.runForkWith(yield* Effect.context())
    const deadlines = Deadlines.make(yield* Timers.make, publishTimeout)
    let isClosed = false

    const begin = (submission: Submission): void => {
      deadlines.start(submission)
      lanes.begin(submission)
    }

    const sizeOf = ({ publication }: Submission): number => publication.content.length
    const inFlight = InFlight.make({ begin, maxBytes, maxItems, sizeOf })

    const end = (submission: Submission, error: BrokerError.BrokerError | undefined, isBystander?: boolean): void => {
      if (submission.hasEnded) return
      submission.hasEnded = true
      deadlines.end(submission)
      lanes.leave(submission, error)
      submission.onOutcome(error, isBystander)
      inFlight.end(submission)
    }

    const lanes = Lane.make<Submission>({
      channels: () => Confirms.make(connection, requestTimeout),
      maxLanes: () => Math.min(maxLanes, (connection.current()?.driver.channelMax ?? maxLanes + 1) - 1),
      write: (channel, submission, wasParked) => {
        if (wasParked) {
          // The wait for the confirmation has a separate limit.
          deadlines.end(submission)
          deadlines.start(submission)
        }
        submission.written = channel.write(submission.publication, (error, isBystander) =>
          end(submission, error, isBystander)
        )
      },
      fail: (submission, { detail, remedy }) => {
        // Nothing was written on that channel.
        const text = `no channel could be opened: ${detail}`
        end(submission, failed(submission.publication.queue, "ConnectionFailed", text, remedy))
      },
      fork: (effect) => run(Effect.forkIn(effect, scope))
    })

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosed = true
        const waiting = [...lanes.drain(), ...inFlight.drain()]
        for (const { onOutcome, publication } of waiting) onOutcome(closed(publication))
      })
    )

    const owner: Submission["owner"] = {
      late: (submission) => {
        const error = late(submission, connection, publishTimeout)
        submission.written?.channel.giveUp(submission.written)
        end(submission, error)
      }
    }

    return {
      open: lanes.open,
      submit: (publication, onOutcome) => {
        const submission = new Submission(publication, onOutcome, owner)
        if (isClosed) onOutcome(closed(publication))
        else inFlight.add(submission)
        return submission
      },
      withdraw: (submission) => {
        submission.onOutcome = () => {}
        if (!inFlight.withdraw(submission) && submission.written === undefined) end(submission, undefined)
      },
      unwritten: (queue, detail) => unwritten(queue, connection.current(), detail)
    }
  })
