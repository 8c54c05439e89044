/**
 * Publishes with confirmation, on a connection of its own: a server that blocks publishers stops reading from their
 * connections, and acknowledgements must not wait behind that. https://www.rabbitmq.com/docs/connection-blocked
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

/** Unconfirmed bytes at which the next publication waits: a slow connection must carry them within `publishTimeout`. */
const maxBytes = 16 * 1024 * 1024

/** The most channels, besides that of what is as large as something that was refused for its size. */
const maxLanes = 64

/** Publishes messages, as many at once as may be unconfirmed. */
export interface Publisher {
  /** Opens the channel for an exchange, so that the first publication there need not wait for that. */
  readonly open: (exchange: string) => void
  /**
   * Publishes as soon as there is room among the unconfirmed, and a connection that takes publications. Once there is
   * room, the wait for a connection and the wait for the confirmation are limited, each by `publishTimeout`.
   */
  readonly submit: (publication: Publication, onOutcome: Confirms.OnOutcome) => Submission
  /** Forgets a submission: `onOutcome` is not called any more, and what has not been written never is. */
  readonly withdraw: (submission: Submission) => void
  /** The error of a message that is given up now, before it was written: the server's alarm if there is one, else `detail`. */
  readonly unwritten: (queue: string, detail: string) => BrokerError.BrokerError
}

/** A publication, until its outcome is known. A class, because there is an object for every message. */
export class Submission implements Deadlines.Deadline {
  at = Number.POSITIVE_INFINITY
  place = -1
  /** Set when it has been written. */
  written: Confirms.Written | undefined = undefined
  hasEnded = false
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
const alarmRemedy = "Look at the server's alarms for memory and disk"

/** The error of what has not been written: the alarm of a server that blocks publishers, or else `detail`. */
const unwritten = (queue: string, live: Live | undefined, detail: string, remedy?: string): BrokerError.BrokerError => {
  const blockedBy = live?.blockedBy()
  return blockedBy === undefined
    ? failed(queue, "ConnectionFailed", detail, remedy)
    : failed(queue, "Throttled", alarmOf(blockedBy), alarmRemedy)
}

/** The error of a submission that has waited for `timeout` milliseconds. */
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

/** A publisher for as long as the scope lives; afterwards every submission fails. */
export const make = (connection: Connection, settings: Settings): Effect.Effect<Publisher, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { maxUnconfirmed: maxItems, publishTimeout, requestTimeout } = settings
    // Made now, so that consumers which end after this, in the same scope, have their channels until they have ended.
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
          // The wait for the confirmation has a limit of its own.
          deadlines.end(submission)
          deadlines.start(submission)
        }
        submission.written = channel.write(submission.publication, (error, isBystander) =>
          end(submission, error, isBystander)
        )
      },
      fail: (submission, { detail, remedy }) => {
        // Whatever became of the channel, nothing was written on it.
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
