/**
 * Sizes of pages: how many messages a browser asks for at once, by the bytes of those that it has seen.
 *
 * When to use: in an adapter whose broker tells the size of a message only by handing it out, so that the next page may
 * be of any size. The first page has one message, each further one at most 16 times as many as the last, 256 at most, and
 * about 4 MiB if all were as large as the largest of the last page. Where large messages stand behind a page of small ones, one
 * page may still have 256 of them.
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
  /** Must be called with the bytes of each message of a page. A page without messages changes nothing. */
  readonly seen: (page: ReadonlyArray<number>) => void
}

/** Makes the sizes for a browser that has seen nothing. */
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
