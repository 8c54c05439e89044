/** The token in each form: only pages of this process for this operator have it. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** The field of forms. */
export const field = "token"

/** Makes and checks tokens. */
export interface FormToken {
  readonly of: (operator: string, now: number) => string
  readonly matches: (operator: string, given: string, now: number) => boolean
}

/** Milliseconds for which a form is valid. */
const lifetime = 12 * 3_600_000

/** Makes tokens of a time and a signature. Their secret ends with the process. */
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
