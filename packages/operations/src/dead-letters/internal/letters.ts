/**
 * Deals with the letters of a sweep: each is removed, or held until the end, so that the broker shows those behind it. The
 * sweep is over when there is nothing more to do.
 */
import type { BrokerError, Delivery } from "@requeue/core"
import * as Exit from "effect/Exit"
import type { AuditFailed } from "./audit.ts"
import type { Books } from "./books.ts"
import { end, type Letter } from "./letter.ts"
import type { Shelf } from "./shelf.ts"

export interface Dependencies {
  readonly books: Books
  readonly shelf: Shelf
  /** The most letters that are worked on at a time. */
  readonly page: number
  /** The broker's name of a copy; `undefined` where it has none. */
  readonly identify: (letter: Delivery.Delivery) => string | undefined
  /** Called after each step. If it throws, the sweep ends. */
  readonly onStep: () => void
  /** Called when more letters may come, or none. */
  readonly onRoom: () => void
  /** Called when the sweep is over, once. */
  readonly onEnd: (exit: Exit.Exit<void, BrokerError.BrokerError | AuditFailed>) => void
}

export interface Letters {
  /** Holds a letter; gives it back at once when the sweep is over. */
  readonly hold: (letter: Letter) => void
  readonly remove: (letter: Letter) => void
  /** Must be called when the broker has removed the letter, or refuses to. */
  readonly settled: (letter: Letter) => void
  /** Gives a letter back. */
  readonly release: (letter: Letter) => void
  /** Letters that may be in flight now. */
  readonly window: () => number
  /** Ends the sweep: takes no more letters, and gives back those that are held or whose copy has not begun. */
  readonly finish: (exit: Exit.Exit<void, BrokerError.BrokerError | AuditFailed>) => void
  readonly isFinished: () => boolean
}

/** How often the shelf may be full before the sweep ends: those that were moved to the tail come round then. */
const rounds = 2

export const make = (dependencies: Dependencies): Letters => {
  const { books, identify, onEnd, onRoom, onStep, page, shelf } = dependencies
  let isFinished = false

  const finish = (exit: Exit.Exit<void, BrokerError.BrokerError | AuditFailed>): void => {
    if (isFinished) return
    isFinished = true
    onRoom()
    for (const letter of shelf.held()) release(letter)
    for (const letter of shelf.worked()) if (letter.stage === "waiting") letter.fiber?.interruptUnsafe()
    onEnd(exit)
  }

  const step = (): void => {
    try {
      onStep()
    } catch (error) {
      finish(Exit.die(error))
    }
    const isThrough = shelf.size().working === 0 && books.wanted() === 0
    // What waits for its turn is published before a full shelf ends the sweep.
    if (isThrough || (shelf.isFull(rounds) && !shelf.isPublishing())) finish(Exit.void)
  }

  const release = (letter: Letter): void => {
    shelf.drop(letter)
    end(letter, "Interrupted")
  }

  return {
    hold: (letter) => {
      if (isFinished) return release(letter)
      shelf.hold(letter)
      onRoom()
      step()
    },
    remove: (letter) => {
      letter.stage = "removing"
      shelf.work(letter)
      books.leaving.set(identify(letter.item.delivery) ?? letter.item, letter)
      end(letter, "Succeeded")
    },
    settled: (letter) => {
      shelf.drop(letter)
      step()
    },
    release,
    window: () => {
      if (isFinished) return 0
      const { held, working } = shelf.size()
      // Further letters are needed only for those that are wanted, and to get to those that were lost with their connection.
      const isOpen = !shelf.isFull(rounds) && (books.wanted() > 0 || shelf.isLost())
      const most = shelf.room() + Math.min(page, working + books.wanted())
      return isOpen ? most : Math.min(most, held + working)
    },
    finish,
    isFinished: () => isFinished
  }
}
