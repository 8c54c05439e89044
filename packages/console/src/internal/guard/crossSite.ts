/**
 * Requests that a page of another site makes a browser send. Browsers say where a request comes from, and no page can change
 * that. https://www.w3.org/TR/fetch-metadata/ https://fetch.spec.whatwg.org/#origin-header
 */

const hostOf = (origin: string): string | undefined => URL.parse(origin)?.host

/**
 * Whether a request that changes something comes from the console's own pages. `Origin: null` is what a page sends that sends
 * no referrer, and also what a sandboxed frame sends: there, `Sec-Fetch-Site` decides.
 */
export const isOwn = (headers: Headers, host: string): boolean => {
  const origin = headers.get("origin")
  const site = headers.get("sec-fetch-site")
  const isOwnOrigin = origin !== null && hostOf(origin) === host.toLowerCase()
  if (site === null) return isOwnOrigin
  return site === "same-origin" && (isOwnOrigin || origin === "null" || origin === null)
}

/**
 * Whether a page may be read: not as a part of another site's page. A link to it is a navigation, and so is what was typed.
 */
export const isReadable = (headers: Headers): boolean => {
  const site = headers.get("sec-fetch-site")
  if (site === null || site === "same-origin" || site === "none") return true
  return headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document"
}
