/**
 * Settles deliveries by the rules that all brokers share (MUST 2 to 4 of `Broker`): a delivery reaches the broker once, a copy
 * is stored before its original is acked, and a failure concerns its delivery only.
 *
 * When to use: in an adapter, for the `settle` of its subscriptions. The adapter contributes what its broker does: which command
 * a settlement becomes, and how commands are carried out.
 */
import { Broker, type BrokerError, Direct, type Outgoing } from "@requeue/core/port"
import * as Exit from "effect/Exit"

/** Settles a delivery by a copy: the copy is stored, then the delivery is acked. */
export interface Copy<C> {
  readonly _tag: "Copy"
  readonly outgoing: Outgoing.Outgoing
  /** The command if the broker rejects the copy. Default: the settlement fails. */
  readonly instead?: C | undefined
}

/** A claimed delivery, and the command that settles it. */
export interface Claim<C> extends Broker.SettleRequest {
  readonly command: C
  /** Whether the command has ended; later ends are ignored. Only this module changes it. */
  isDone: boolean
}

/** Ends the command of a claim: without an error, it is carried out. Default of `fate`: that of the error. */
export type Done<C> = (claim: Claim<C>, error?: BrokerError.BrokerError, fate?: Broker.Fate) => void

/** How a delivery ends: its message has left the queue, was returned to it, or is redelivered because the lease or connection is lost. */
export type End = "gone" | "returned" | "lost"

/** The commands of a broker, and how they are carried out. `C` are commands other than copies, `K` are copies. */
export interface Options<C extends Tagged, K extends Copy<C> = Copy<C>> {
  /**
   * Claims a delivery, so no other settlement of it reaches the broker. Returns the error of one that is not held: it was
   * claimed before, or it is lost.
   */
  readonly claim: (request: Broker.SettleRequest) => BrokerError.BrokerError | undefined
  /** Ends the claim of a failed settlement. Returns the error of a delivery that was lost meanwhile. */
  readonly release: (
    claim: Claim<C | K>,
    error: BrokerError.BrokerError,
    fate: Broker.Fate
  ) => BrokerError.BrokerError | undefined
  /** Returns the command of a claimed delivery. */
  readonly toCommand: (request: Broker.SettleRequest) => C | K
  /** The command that acks a delivery. */
  readonly ack: C
  /** Carries out commands, and calls `done` for each in bounded time. */
  readonly carryOut: (claims: ReadonlyArray<Claim<C>>, done: Done<C>) => void
  /**
   * Publishes copies, and calls `done` for each in bounded time, as soon as it is stored or has failed. Default: no command is
   * a copy, and one that is makes the settlement throw.
   */
  readonly publish?: ((claims: ReadonlyArray<Claim<K>>, done: Done<K>) => void) | undefined
  /**
   * Called when a copy is stored, before the ack. From then on the settlement has succeeded: remember the delivery, and ack it
   * if it is redelivered. Default: nothing, for adapters that remember the deliveries that have `ended`.
   */
  readonly stored?: ((request: Broker.SettleRequest) => void) | undefined
  /** Called when a claimed delivery has ended. Default: nothing. */
  readonly ended?: ((claim: Claim<C | K>, end: End) => void) | undefined
  /** Whether a smaller copy may succeed after this error. Default: after `BodyTooLarge`. */
  readonly mayBeSmaller?: ((error: BrokerError.BrokerError) => boolean) | undefined
}

interface Tagged {
  readonly _tag: string
}

type Failure = Pick<Broker.SettleFailure, "error" | "fate">
type Requests = ReadonlyArray<Broker.SettleRequest>
type Failures = ReadonlyArray<Broker.SettleFailure>

const isTooLarge = ({ reason }: BrokerError.BrokerError): boolean => reason === "BodyTooLarge"

/** Returns the `settle` of a subscription. */
export const make = <C extends Tagged, K extends Copy<C> = Copy<C>>(
  options: Options<C, K>
): ((requests: Requests) => Direct.Direct<Failures, never>) => {
  const {
    ack,
    carryOut,
    claim,
    ended,
    mayBeSmaller = isTooLarge,
    publish = unpublished,
    release,
    stored,
    toCommand
  } = options

  const begin = (requests: Requests, onEnd: (failures: Failures) => void): void => {
    const failures: Array<Broker.SettleFailure> = []
    let open = 1
    const end = (): void => {
      if (--open === 0) onEnd(failures)
    }
    const succeed = (each: Claim<C | K>): void => {
      ended?.(each, each.command._tag === ack._tag ? "gone" : "returned")
      end()
    }
    const fail = (each: Claim<C | K>, { error, fate }: Failure): void => {
      const { delivery } = each
      const loss = fate === "lost" ? error : release(each, error, fate)
      if (loss !== undefined) ended?.(each, "lost")
      failures.push(
        loss === undefined
          ? { delivery, error, fate, smaller: mayBeSmaller(error) }
          : { delivery, error: loss, fate: "lost" }
      )
      end()
    }
    const settled = once<C>((each, failure) => (failure === undefined ? succeed(each) : fail(each, failure)))
    // A function, because most calls have no copies.
    const copy = (copies: ReadonlyArray<Claim<K>>): void => {
      // The settlement has succeeded, whatever becomes of the ack. But a broker that rejects acks would redeliver forever.
      const acked = once<C>((each, failure) => (failure?.fate === "rejected" ? fail(each, failure) : succeed(each)))
      const copied = once<K>((each, failure) => {
        const { instead } = each.command
        if (failure === undefined) {
          stored?.(each)
          carryOut([claimed(each, ack)], acked)
        } else if (failure.fate === "rejected" && instead !== undefined) carryOut([claimed(each, instead)], settled)
        else fail(each, failure)
      })
      publish(copies, copied)
    }

    const commands: Array<Claim<C>> = []
    let copies: Array<Claim<K>> | undefined
    for (const request of requests) {
      const error = claim(request)
      if (error !== undefined) {
        failures.push({ delivery: request.delivery, error, fate: "lost" })
        continue
      }
      open++
      const command = toCommand(request)
      if (isCopy(command)) (copies ??= []).push(claimed(request, command))
      else commands.push(claimed(request, command))
    }
    if (commands.length > 0) carryOut(commands, settled)
    if (copies !== undefined) copy(copies)
    end()
  }

  const isCopy = (command: C | K): command is K => command._tag === "Copy"

  return (requests) =>
    Direct.make((onExit) => {
      begin(requests, (failures) => onExit(Exit.succeed(failures)))
      return () => undefined
    })
}

const unpublished = (): never => {
  throw new TypeError("Settling.make: toCommand has returned a copy, which needs the option publish")
}

const claimed = <C>({ delivery, settlement }: Broker.SettleRequest, command: C): Claim<C> => ({
  delivery,
  settlement,
  command,
  isDone: false
})

/** Ignores all ends but the first of a claim. */
const once =
  <C>(then: (claim: Claim<C>, failure: Failure | undefined) => void): Done<C> =>
  (claim, error, fate) => {
    if (claim.isDone) return
    claim.isDone = true
    then(claim, error && { error, fate: fate ?? Broker.fateOf(error) })
  }
