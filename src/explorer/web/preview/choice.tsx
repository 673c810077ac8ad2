interface Props<T extends string> {
  readonly label: string
  readonly options: readonly (readonly [value: T, name: string])[]
  readonly value: T
  readonly onChoose: (value: T) => void
}

/** A choice between a few views of a resource. */
export function Choice<T extends string>({ label, options, value, onChoose }: Props<T>) {
  return (
    <fieldset class="switch" aria-label={label}>
      {options.map(([option, name]) => (
        <button
          key={option}
          type="button"
          class="button"
          aria-pressed={option === value}
          onClick={() => onChoose(option)}
        >
          {name}
        </button>
      ))}
    </fieldset>
  )
}
