/**
 * Page sizes: how many messages a browser requests at once, by the size of earlier messages.
 *
 * When to use: in an adapter whose broker reports a message's size only on delivery. The first page has one message.
 * Each further page has at most 16 times as many messages as the last one, at most 256, and about 4 MiB, if all
 * messages are as large as the largest one of the last page. If large messages follow a page of small ones, one page
 * may still have 256 of them.
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

const maxMessages = 256
const growth = 16
const bytesOfPage = 4 * 2 ** 20

/** The sizes of the pages of one browser. */
export interface PageSize {
  /** Returns the most messages of the next page, at least 1. */
  readonly size: () => number
  /**
   * Adjusts the size of the next page. `page` has the number of bytes of each message of the last page. An empty page
   * changes nothing.
   */
  readonly seen: (page: ReadonlyArray<number>) => void
}

/** Makes the page sizes of a new browser. */
export const make = (): PageSize => {
  let size = 1
  return {
    size: () => size,
    seen: (page) => {
      if (page.length === 0) return
      const largest = page.reduce((a, b) => Math.max(a, b), 1)
      size = Math.max(1, Math.min(maxMessages, growth * page.length, Math.floor(bytesOfPage / largest)))
    }
  }
}
