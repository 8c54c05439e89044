/** Hides passwords in URLs of a command line, which no output may repeat. */
import { BrokerUrl } from "@requeue/core/port"

/**
 * Replaces the passwords of all URLs among the arguments in a text. It finds each password as written, decoded, and in
 * JSON.
 */
export const mask = (text: string, args: ReadonlyArray<string>): string =>
  args
    .flatMap((arg) => BrokerUrl.passwordOf(arg.replace(/^--\w+=/, "")) ?? [])
    .flatMap((password) => forms(password))
    // Shorter ones would match parts of words.
    .filter((password) => password.length > 2)
    .reduce((masked, password) => masked.replaceAll(password, "***"), text)

const forms = (password: string): ReadonlyArray<string> => {
  try {
    const meant = decodeURIComponent(password)
    return [password, meant, JSON.stringify(meant).slice(1, -1)]
  } catch {
    return [password]
  }
}
