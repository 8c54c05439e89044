/** Secrets in texts, and the variables that replace them. */
import type * as StrictSchema from "../StrictSchema.ts"

/** Returns the forms of a secret in a text: as it is, percent-encoded, in quotes, or in one line. */
const forms = (secret: string): ReadonlyArray<string> => [
  secret,
  encodeURIComponent(secret.toWellFormed()),
  JSON.stringify(secret).slice(1, -1),
  secret.replaceAll(/\s+/g, " ")
]

/** Replaces secrets in a text by their variables. A value of one or two characters does not count as a secret. */
export const mask = (text: string, secrets: ReadonlyMap<string, string>): string => {
  const longest = [...secrets].filter(([, secret]) => secret.length > 2).toSorted(([, a], [, b]) => b.length - a.length)
  return longest.reduce(
    (masked, [name, secret]) =>
      forms(secret).reduce((shown, form) => shown.replaceAll(form, () => `\${${name}}`), masked),
    text
  )
}

/** Masks the secrets in a problem's texts. */
export const maskProblem = (
  { detail, path, remedy }: StrictSchema.Problem,
  secrets: ReadonlyMap<string, string>
): StrictSchema.Problem => ({
  path,
  detail: mask(detail, secrets),
  remedy: remedy === undefined ? undefined : mask(remedy, secrets)
})
