/**
 * Finds the unconfirmed publications for which the server may have closed the channel. It closes the channel because of one, but
 * reports only the exchange, the user or the size of the body. Pure.
 */
import type { Publication } from "../client.ts"

/** The server's name for the default exchange, whose name is empty. */
const defaultExchange = "amq.default"

const suspicion = (text: string): ((publication: Publication) => boolean) => {
  const limit = /larger than (?:configured )?max size (\d+)/.exec(text)?.[1]
  if (limit !== undefined) return ({ content }) => content.length > Number(limit)
  const user = /user_id property set to '(.*)' but authenticated/s.exec(text)?.[1]
  if (user !== undefined) return ({ options }) => options["userId"] === user
  return ({ exchange }) => text.includes(`exchange '${exchange === "" ? defaultExchange : exchange}' in vhost`)
}

/**
 * The publications that the server refuses with these words: all that go to the exchange that it names, have the
 * user that it names, or are larger than the size that it names. A single publication is to blame whatever the words are. Of several, there may be none.
 */
export const attributeClose = <A extends { readonly publication: Publication }>(
  text: string,
  unconfirmed: ReadonlyArray<A>
): ReadonlyArray<A> => {
  const isSuspect = suspicion(text)
  return unconfirmed.length === 1 ? unconfirmed : unconfirmed.filter(({ publication }) => isSuspect(publication))
}
