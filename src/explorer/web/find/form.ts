import { isResourceError } from '../../../core/errors.ts'
import { compileTemplate, type UriTemplate } from '../../../core/template.ts'
import { parseTemplate } from '../../../core/template-syntax.ts'

/** One variable of a template, as a field of a form. */
export interface Field {
  readonly name: string
  /** Only a variable behind `?`, `&` or `;` may be left out without changing the meaning of the URI. */
  readonly isOptional: boolean
  /** It takes several values (`{name*}`). */
  readonly isList: boolean
}

/** A template as a form. `undefined`: it is malformed, as only a third-party server can send. */
export interface Form {
  readonly template: UriTemplate
  readonly fields: readonly Field[]
}

export function formOf(uriTemplate: string): Form | undefined {
  try {
    const template = compileTemplate(uriTemplate)
    const fields = new Map<string, Field>()
    for (const part of parseTemplate(uriTemplate)) {
      if (typeof part === 'string') continue
      const isOptional = ['?', '&', ';'].includes(part.operator.symbol)
      for (const { name, explode } of part.variables) {
        const known = fields.get(name)
        fields.set(name, {
          name,
          isOptional: isOptional && (known?.isOptional ?? true),
          isList: explode || (known?.isList ?? false),
        })
      }
    }
    return { template, fields: [...fields.values()] }
  } catch (error) {
    if (isResourceError(error)) return undefined
    throw error
  }
}

export type FieldValues = Readonly<Record<string, string>>

/** The values as in the permalink. */
export function valuesOf(text: string | undefined): FieldValues {
  return Object.fromEntries(new URLSearchParams(text ?? ''))
}

export function textOfValues(values: FieldValues): string | undefined {
  const params = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''))
  return params.size === 0 ? undefined : params.toString()
}

/** The required fields that are still empty. */
export function missingIn({ fields }: Form, values: FieldValues): readonly string[] {
  return fields.filter(({ name, isOptional }) => !isOptional && (values[name] ?? '') === '').map(({ name }) => name)
}

/** The URI with the values so far. A list value is split at its commas. `undefined`: these values make no URI. */
export function uriOfForm({ template, fields }: Form, values: FieldValues): string | undefined {
  const given = new Map<string, string | readonly string[]>()
  for (const { name, isList } of fields) {
    const value = values[name] ?? ''
    if (value === '') continue
    const members = value
      .split(',')
      .map((member) => member.trim())
      .filter((member) => member !== '')
    given.set(name, isList ? members : value)
  }
  try {
    return template.expand(given)
  } catch (error) {
    if (isResourceError(error)) return undefined
    throw error
  }
}

/** Returns the values of the other fields, for the completion of one. */
export function othersOf(form: Form, values: FieldValues, name: string): ReadonlyMap<string, string> {
  return new Map(
    form.fields.flatMap((field) => {
      const value = values[field.name] ?? ''
      return field.name === name || value === '' ? [] : [[field.name, value] as const]
    }),
  )
}
