/** Makes and checks the token in each form. Only pages that this process has made for this operator have the token. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** The name of the form field that has the token. */
export const field = "token"

/** A maker and checker of tokens. */
export interface FormToken {
  readonly of: (operator: string, now: number) => string
  readonly matches: (operator: string, given: string, now: number) => boolean
}

/** Milliseconds for which a form is valid. */
const lifetime = 12 * 3_600_000

/** Makes tokens from a time and a signature. The secret of the signatures ends with the process. */
export const make = (): FormToken => {
  const secret = randomBytes(32)
  const sign = (operator: string, made: string) =>
    createHmac("sha256", secret)
      .update(JSON.stringify([operator, made]))
      .digest()
  return {
    of: (operator, now) => {
      const made = now.toString(36)
      return `${made}.${sign(operator, made).toString("base64url")}`
    },
    matches: (operator, given, now) => {
      const [made = "", signature = ""] = given.split(".")
      const bytes = Buffer.from(signature, "base64url")
      const own = sign(operator, made)
      return bytes.length === own.length && timingSafeEqual(bytes, own) && now - Number.parseInt(made, 36) < lifetime
    }
  }
}
