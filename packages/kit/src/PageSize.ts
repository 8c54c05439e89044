/**
 * Sizes of pages: how many messages a browser requests at once, by the bytes of those that it has seen.
 *
 * When to use: in an adapter whose broker shows a message's size only on delivery. The first page has one message. Each
 * next page has at most 16 times as many, 256 at most, and about 4 MiB if all were as large as the largest of the last
 * page. If large messages follow a page of small ones, one page may still have 256 of them.
 *
 * @example
 * ```ts
 * import { PageSize } from "@requeue/kit"
 *
 * const pages = PageSize.make()
 * pages.size() // => 1
 * pages.seen([1000])
 * pages.size() // => 16
 * pages.seen([1000, 1_000_000])
 * pages.size() // => 4
 * ```
 */

const most = 256
const growth = 16
const bytesOfPage = 4 * 2 ** 20

/** The sizes of the pages of one browser. */
export interface PageSize {
  /** The most messages of the next page, at least 1. */
  readonly size: () => number
  /** Call it with the bytes of each message of a page. An empty page changes nothing. */
  readonly seen: (page: ReadonlyArray<number>) => void
}

/** Makes the sizes for a new browser. */
export const make = (): PageSize => {
  let size = 1
  return {
    size: () => size,
    seen: (page) => {
      if (page.length === 0) return
      const largest = page.reduce((a, b) => Math.max(a, b), 1)
      size = Math.max(1, Math.min(most, growth * page.length, Math.floor(bytesOfPage / largest)))
    }
  }
}
