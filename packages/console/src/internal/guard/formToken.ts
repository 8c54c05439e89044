/** The token in each form: only a page that this process has made for this operator has it. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** The field of forms. */
export const field = "token"

/** Makes and checks tokens. */
export interface FormToken {
  readonly of: (operator: string) => string
  readonly matches: (operator: string, given: string) => boolean
}

/** Tokens under a secret of their own, which ends with the process. */
export const make = (): FormToken => {
  const secret = randomBytes(32)
  const sign = (operator: string) => createHmac("sha256", secret).update(operator).digest()
  return {
    of: (operator) => sign(operator).toString("base64url"),
    matches: (operator, given) => {
      const bytes = Buffer.from(given, "base64url")
      const own = sign(operator)
      return bytes.length === own.length && timingSafeEqual(bytes, own)
    }
  }
}
