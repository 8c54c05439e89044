/** The headers of every response. */

const policy = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'"
].join("; ")

/** Headers that keep browsers from running foreign scripts, framing, sniffing, sending referrers and caching. */
export const all: Readonly<Record<string, string>> = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "x-robots-tag": "noindex"
}

/** The headers of a file whose name has a hash of its content. */
export const asset: Readonly<Record<string, string>> = {
  ...all,
  "cache-control": "private, max-age=31536000, immutable"
}
