/** GitHub's signature of a webhook: `X-Hub-Signature-256: sha256=<HMAC of the body>`. */
import { createHmac, timingSafeEqual } from "node:crypto"

export const sign = (secret: string, body: string | Uint8Array): string =>
  `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`

export const verify = (secret: string, body: Uint8Array, signature: string | undefined): boolean => {
  const expected = Buffer.from(sign(secret, body))
  const given = Buffer.from(signature ?? "")
  // The comparison takes as long for a wrong signature as for the right one.
  return given.length === expected.length && timingSafeEqual(given, expected)
}
