/** Reads why the server refused a declaration. Pure. https://www.rabbitmq.com/docs/queues#property-equivalence */

/** An argument that a refusal names; `value` is `undefined` if the queue lacks it or the value cannot be parsed. */
export interface Told {
  readonly name: string
  readonly value: string | number | boolean | undefined
}

const valueOf = (text: string, type: string): Told["value"] => {
  if (type === "longstr") return text
  if (type === "bool") return text === "true"
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : undefined
}

/** Parses the argument from a refusal, such as `inequivalent arg 'x-queue-type' …: … but current is 'quorum'`. */
export const parse = (refusal: string): Told | undefined => {
  const [, name, current] = /inequivalent arg '([^']+)' .* but current is (.*)$/s.exec(refusal) ?? []
  if (name === undefined || current === undefined) return undefined
  const [, text, type] = /^the value '(.*)' of type '(\w+)'/s.exec(current) ?? []
  if (text !== undefined && type !== undefined) return { name, value: valueOf(text, type) }
  return { name, value: /^'(.*)'/s.exec(current)?.[1] }
}
