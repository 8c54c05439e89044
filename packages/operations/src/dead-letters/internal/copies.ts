/**
 * Publishes what must be there before a letter is removed: the copy of one that was selected, and an unchanged copy at the
 * tail of the queue of one that was not, where as many are held as may be.
 */
import { Broker, type BrokerError, type Delivery } from "@requeue/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { type Admit, AuditFailed } from "./audit.ts"
import type { Books } from "./books.ts"
import type { Letter } from "./letter.ts"
import type { Letters } from "./letters.ts"
import type { Publish, Watcher } from "./publishing.ts"
import type { Shelf } from "./shelf.ts"

/** A copy that must be there before its letter is removed. */
interface Copy {
  readonly publish: Publish
  readonly of: (letter: Delivery.Delivery) => Effect.Effect<void, BrokerError.BrokerError>
  /** Runs once, before the first try. Default: nothing. */
  readonly admit?: Admit | undefined
}

/** Nothing is published: the letter is removed when it was admitted. */
export const none = (admit: Admit): Copy => ({ publish: (_, { onTry }) => onTry, of: () => Effect.void, admit })

export interface Dependencies {
  readonly books: Books
  readonly shelf: Shelf
  readonly letters: Letters
  /** The copy of a selected letter. */
  readonly copy: Copy | "none"
  /** The unchanged copy. */
  readonly copyBehind: Copy
  /** The broker's name of a copy; `undefined` where it has none. */
  readonly identify: (letter: Delivery.Delivery) => string | undefined
  readonly fork: (
    effect: Effect.Effect<void, BrokerError.BrokerError | AuditFailed>
  ) => Fiber.Fiber<void, BrokerError.BrokerError | AuditFailed>
  /** Called before a letter is copied behind the others. */
  readonly onMove: (letter: Letter) => void
}

export interface Copies {
  /** Deals with a letter that was selected. */
  readonly take: (letter: Letter) => void
  /** Deals with a letter that was not. */
  readonly pass: (letter: Letter) => void
}

export const make = (dependencies: Dependencies): Copies => {
  const { books, copy, copyBehind, letters, onMove, shelf } = dependencies

  /** Removes the letter when its copy is there. */
  const replace = (
    letter: Letter,
    { admit, of, publish }: Copy,
    onRefused: (error: BrokerError.BrokerError) => void
  ): void => {
    shelf.work(letter)
    letter.stage = "waiting"
    const copied = Effect.suspend(() => of(letter.item.delivery))
    letter.fiber = dependencies.fork(publish(copied, progress(letter, dependencies, admit)))
    letter.fiber.addObserver((exit) => {
      if (Exit.isSuccess(exit)) return letters.remove(letter)
      const isInterrupted = Cause.hasInterruptsOnly(exit.cause)
      if (isInterrupted && letter.stage === "publishing") books.unconfirmed.add(letter)
      const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
      if (error !== undefined && !(error instanceof AuditFailed) && Broker.fateOf(error) === "refused")
        return onRefused(error)
      if (!isInterrupted) letters.finish(exit)
      letters.release(letter)
    })
  }

  const pass = (letter: Letter): void => {
    if (!shelf.isFull(1)) return letters.hold(letter)
    letter.isPassed = true
    onMove(letter)
    replace(letter, copyBehind, (error) => {
      letters.finish(Exit.fail(error))
      letters.release(letter)
    })
  }

  return {
    take: (letter) => {
      if (copy === "none") return letters.remove(letter)
      replace(letter, copy, (error) => {
        // When the broker takes none of them, something else is wrong than the letters.
        if (books.refuse(letter, error)) letters.finish(Exit.fail(error))
        pass(letter)
      })
    },
    pass
  }
}

/** Keeps the stage of a letter while its copy is published. */
const progress = (letter: Letter, { books, identify, letters }: Dependencies, admit: Admit | undefined): Watcher => {
  let isAdmitted = admit === undefined
  const admitted = Effect.suspend(() => {
    if (isAdmitted || admit === undefined) return Effect.void
    return Effect.tap(admit(letter.item.delivery), () => Effect.sync(() => (isAdmitted = true)))
  })
  const begun = Effect.suspend(() => {
    // A lost one comes again. If its copy were published now, nobody could tell by then.
    if (letter.item.isLost && identify(letter.item.delivery) === undefined) return Effect.never
    letter.stage = "publishing"
    return Effect.void
  })
  return {
    onTry: Effect.andThen(admitted, begun),
    onPause: (isUnanswered) => {
      letter.stage = "waiting"
      if (isUnanswered) books.unconfirmed.add(letter)
      if (letters.isFinished()) letter.fiber?.interruptUnsafe()
    }
  }
}
