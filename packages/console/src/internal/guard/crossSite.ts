/**
 * Detects requests that a page of another site causes. Browsers send the origin of a request, and pages cannot change it.
 * https://www.w3.org/TR/fetch-metadata/ https://fetch.spec.whatwg.org/#origin-header
 */

const hostOf = (origin: string): string | undefined => URL.parse(origin)?.host

/**
 * Whether a request that changes something comes from a page of the console. Pages without a referrer and sandboxed frames
 * both send `Origin: null`; then `Sec-Fetch-Site` decides.
 */
export const isOwn = (headers: Headers, host: string): boolean => {
  const origin = headers.get("origin")
  const site = headers.get("sec-fetch-site")
  const isOwnOrigin = origin !== null && hostOf(origin) === host.toLowerCase()
  if (site === null) return isOwnOrigin
  return site === "same-origin" && (isOwnOrigin || origin === "null" || origin === null)
}

/**
 * Whether a request may read a page. A page of another site may link to the console, but not embed or fetch its pages.
 */
export const isReadable = (headers: Headers): boolean => {
  const site = headers.get("sec-fetch-site")
  if (site === null || site === "same-origin" || site === "none") return true
  return headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document"
}
