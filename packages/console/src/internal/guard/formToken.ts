/** The token in each form: only a page that this process has made for this operator has it. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** The field of forms. */
export const field = "token"

/** Makes and checks tokens. */
export interface FormToken {
  readonly of: (operator: string, now: number) => string
  readonly matches: (operator: string, given: string, now: number) => boolean
}

/** Milliseconds that a form can be sent after its page was made. */
const lifetime = 12 * 3_600_000

/** Tokens under a secret of their own, which ends with the process: the time at which each was made, and a signature. */
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
