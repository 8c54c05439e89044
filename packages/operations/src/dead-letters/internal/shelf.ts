/** Where a sweep keeps its letters: those that it works on, and those that it holds until the end. */
import type { Letter } from "./letter.ts"

export interface Shelf {
  /** Adds a letter to those that are worked on. */
  readonly work: (letter: Letter) => void
  readonly hold: (letter: Letter) => void
  /** Takes a letter from those that are worked on. */
  readonly drop: (letter: Letter) => void
  readonly worked: () => Iterable<Letter>
  readonly held: () => Iterable<Letter>
  readonly size: () => { readonly working: number; readonly held: number }
  /** Whether it holds as many letters as it may, or `times` as many. */
  readonly isFull: (times: number) => boolean
  /** Letters that may be held before the credit is raised; it rises in steps, and not for each of them. */
  readonly room: () => number
  /** Whether copies are being published, or are about to be; else the broker has to do the next step. */
  readonly isPublishing: () => boolean
  /** Whether a letter that is worked on was lost, and has to come again. */
  readonly isLost: () => boolean
}

/** Letters by which the room grows. */
const step = 100

/** Bytes of bodies with which it is full: 64 MiB. */
const bytesLimit = 64 * 2 ** 20

/** Holds up to `limit` letters. */
export const make = (limit: number): Shelf => {
  const working = new Set<Letter>()
  const held = new Set<Letter>()
  let bytes = 0
  return {
    work: (letter) => void working.add(letter),
    hold: (letter) => {
      letter.stage = "held"
      working.delete(letter)
      held.add(letter)
      bytes += letter.item.delivery.body.length
    },
    drop: (letter) => void working.delete(letter),
    worked: () => working,
    held: () => held,
    size: () => ({ working: working.size, held: held.size }),
    isFull: (times) => held.size >= times * limit || bytes >= times * bytesLimit,
    room: () => Math.ceil(held.size / step) * step,
    isPublishing: () => [...working].some(({ item, stage }) => stage !== "removing" && !item.isLost),
    isLost: () => [...working].some(({ item }) => item.isLost)
  }
}
