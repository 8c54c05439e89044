/** Letters as the engine hands them over, and the broker's answers: each letter is judged once. */
import type { Broker, Delivery } from "@requeue/core"
import type * as Engine from "@requeue/core/engine"
import * as Exit from "effect/Exit"
import type { Again } from "./again.ts"
import type { Copies } from "./copies.ts"
import * as Letter from "./letter.ts"
import type { Letters } from "./letters.ts"
import type { Books } from "./books.ts"

export interface Dependencies {
  readonly again: Again
  readonly books: Books
  readonly letters: Letters
  readonly copies: Copies
  readonly identify: (letter: Delivery.Delivery) => string | undefined
  /** Whether the letter is selected. Called once for each. What it throws ends the sweep. */
  readonly select: (letter: Delivery.Delivery) => boolean
  /** Whether the letter may have arrived since the work began. */
  readonly isNew?: ((letter: Delivery.Delivery) => boolean) | undefined
}

export interface Arrivals {
  readonly arrive: Engine.RunHandler
  /** Must be called with every answer to settlements. */
  readonly settled: (
    requests: ReadonlyArray<Broker.SettleRequest>,
    failures: ReadonlyArray<Broker.SettleFailure>
  ) => void
}

export const make = ({ again, books, copies, identify, isNew, letters, select }: Dependencies): Arrivals => {
  /** The letter was delivered before, and lost. */
  const resume = (letter: Letter.Letter, known: Letter.Letter): void => {
    const isNamed = identify(letter.item.delivery) !== undefined
    letter.isPassed = known.isPassed
    again.judged(letter)
    // A delivery that is known by its metadata alone may be another letter, and is not removed unpublished.
    if (known.stage === "removing" && isNamed) return letters.remove(letter)
    if (known.stage !== "waiting" || !known.item.isLost) return letters.hold(letter)
    known.fiber?.interruptUnsafe()
    return known.isPassed ? copies.pass(letter) : copies.take(letter)
  }

  const decide = (letter: Letter.Letter): void => {
    const known = again.recognise(letter)
    const isSpare = known === undefined && books.wanted() === 0
    if (letters.isFinished() || isSpare || known === "moved") return letters.hold(letter)
    if (known !== undefined) return resume(letter, known)
    let isSelected = false
    try {
      const { delivery } = letter.item
      // Counts tell how many have arrived, and their times which these are: no two clocks need to be the same.
      if (books.arrived() > 0 && isNew?.(delivery) === true) books.leave()
      else {
        books.decide()
        isSelected = select(delivery)
      }
    } catch (error) {
      letters.finish(Exit.die(error))
      return letters.hold(letter)
    }
    again.judged(letter)
    if (!isSelected) return copies.pass(letter)
    books.select()
    copies.take(letter)
  }

  return {
    arrive: (task, done) => {
      const letter = Letter.make(task.items[0]!, (outcome) => done(task, outcome))
      decide(letter)
      return {
        interrupt: () => {
          letter.fiber?.interruptUnsafe()
          letters.release(letter)
        }
      }
    },
    settled: (requests, failures) => {
      const failed = new Map(failures.map((each) => [each.delivery, each]))
      for (const request of requests) {
        // The engine's requests are its items.
        const key = identify(request.delivery) ?? request
        const letter = request.settlement._tag === "Ack" ? books.leaving.get(key) : undefined
        if (letter === undefined) continue
        const failure = failed.get(request.delivery)
        letter.error = failure?.error
        if (failure === undefined) {
          books.remove(key)
          again.removed(letter)
        }
        // All others are tried again: a lost one comes back, and the engine knows it where the broker names copies.
        if (failure === undefined || failure.fate === "refused") letters.settled(letter)
      }
    }
  }
}
