/** A choice of a field: its value, its name for people, and the language of the name if it is another one. */
export type Option<T extends string> = readonly [value: T, name: string, lang?: string]

interface SelectProps<T extends string> {
  readonly label: string
  readonly class?: string
  readonly options: readonly Option<T>[]
  readonly value: T
  readonly onChoose: (value: T) => void
}

/** A field with its label, in which one of several values is chosen. */
export function Select<T extends string>({ label, class: name, options, value, onChoose }: SelectProps<T>) {
  return (
    <label class={name}>
      <span>{label}</span>
      <select class="field" value={value} onChange={({ currentTarget }) => onChoose(currentTarget.value as T)}>
        {options.map(([option, text, lang]) => (
          <option key={option} value={option} lang={lang}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
