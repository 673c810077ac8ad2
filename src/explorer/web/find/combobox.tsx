import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import { isResourceError, valueOr } from '../../../core/errors.ts'
import type { Completion } from '../../../core/provider.ts'
import { compileTemplate, type UriTemplate } from '../../../core/template.ts'
import { parseTemplate } from '../../../core/template-parts.ts'
import { errorSentence } from '../state/announce.ts'
import { escapeInvisible } from '../words/texts.ts'
import { t } from './words.ts'

interface ComboboxProps {
  readonly label: string
  readonly hint?: string | undefined
  readonly value: string
  readonly isRequired: boolean
  /** Requests the values that match the typed text. */
  readonly complete: (value: string, signal: AbortSignal) => Promise<Completion>
  readonly onValue: (value: string) => void
  /** Called on Enter while no value is selected. */
  readonly onEnter: () => void
}

/** Delay before values are requested while the user types (debounce), in milliseconds. */
const debounceMs = 150

/** A field with completion (WAI-ARIA Authoring Practices, combobox with a list): arrows select, Enter accepts, Escape closes. */
export function Combobox({ label, hint, value, isRequired, complete, onValue, onEnter }: ComboboxProps) {
  const id = useId()
  const { completion, active, offer } = useOffer()
  const error = useSignal('')
  const isOpen = useSignal(false)
  const { ask, stop } = useQuestion(complete, (answer, fault) => {
    offer(answer)
    error.value = fault
  })
  const open = () => {
    isOpen.value = true
    ask(value, 0)
  }
  const close = () => {
    stop()
    isOpen.value = false
    active.value = -1
  }
  const take = (value: string) => {
    onValue(value)
    // A value that ends in `/` may be a folder, so the values below it are offered.
    if (value.endsWith('/')) ask(value, 0)
    else close()
  }
  const { values } = completion.value
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return
    const last = values.length - 1
    switch (event.key) {
      case 'ArrowDown':
      case 'ArrowUp': {
        event.preventDefault()
        if (!isOpen.value) return open()
        const step = event.key === 'ArrowDown' ? 1 : -1
        const next = active.value + step
        active.value = next > last ? -1 : next < -1 ? last : next
        document.getElementById(`${id}-${active.value}`)?.scrollIntoView({ block: 'nearest' })
        return
      }
      case 'Enter': {
        event.preventDefault()
        const value = isOpen.value ? values[active.value] : undefined
        if (value !== undefined) return take(value)
        close()
        return onEnter()
      }
      case 'Escape':
        if (!isOpen.value) return
        event.stopPropagation()
        return close()
    }
  }
  // A list with only the typed text offers no choice, and would cover the page below the field.
  const isListed = isOpen.value && values.some((one) => one !== value)
  return (
    <div class="combobox">
      <label for={`${id}-field`}>
        <bdi>{escapeInvisible(label)}</bdi>
        {hint === undefined ? null : <span class="combobox-hint"> {hint}</span>}
      </label>
      <input
        id={`${id}-field`}
        type="text"
        class="field"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={isListed}
        aria-controls={`${id}-list`}
        aria-activedescendant={active.value >= 0 && isListed ? `${id}-${active.value}` : undefined}
        aria-required={isRequired}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        value={value}
        onFocus={open}
        onBlur={close}
        onInput={({ currentTarget }) => {
          const typed = currentTarget.value
          onValue(typed)
          isOpen.value = true
          // Until the answer comes, show those of the previous values that begin with the typed text.
          offer({ values: values.filter((one) => one.startsWith(typed)) })
          ask(typed, debounceMs)
        }}
        onKeyDown={onKeyDown}
      />
      <div
        class="combobox-list"
        role="listbox"
        id={`${id}-list`}
        aria-label={t('values', { name: label })}
        hidden={!isListed}
      >
        {values.map((one, index) => (
          <div
            key={one}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active.value}
            // Keep the focus in the field.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => take(one)}
            onKeyDown={onKeyDown}
          >
            <bdi>{escapeInvisible(one)}</bdi>
          </div>
        ))}
      </div>
      {isListed ? <MoreValues {...completion.value} /> : null}
      {error.value === '' ? null : (
        <p class="combobox-error" role="alert">
          {error.value}
        </p>
      )}
    </div>
  )
}

/** A note that there are more values than the listed ones. */
function MoreValues({ values, total, hasMore }: Completion) {
  const count = values.length
  if (hasMore !== true && (total ?? 0) <= count) return null
  return (
    <p class="combobox-more">{total === undefined ? t('valuesSome', { count }) : t('valuesMore', { count, total })}</p>
  )
}

/** Returns the shown values, the index of the selected value (-1: none), and `offer`, which replaces the values. */
function useOffer() {
  const completion = useSignal<Completion>({ values: [] })
  const active = useSignal(-1)
  const offer = (answer: Completion) => {
    const selected = completion.value.values[active.value]
    completion.value = answer
    active.value = selected === undefined ? -1 : answer.values.indexOf(selected)
  }
  return { completion, active, offer }
}

/** Requests the values that match a text, after a pause. A newer request replaces an older one. */
function useQuestion(complete: ComboboxProps['complete'], onAnswer: (answer: Completion, fault: string) => void) {
  const asking = useRef<AbortController | undefined>(undefined)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const stop = () => {
    clearTimeout(timer.current)
    asking.current?.abort()
  }
  useEffect(() => stop, [])
  const ask = (text: string, wait: number) => {
    stop()
    timer.current = setTimeout(async () => {
      const controller = new AbortController()
      asking.current = controller
      try {
        const answer = await complete(text, controller.signal)
        if (!controller.signal.aborted) onAnswer(answer, '')
      } catch (reason) {
        if (!controller.signal.aborted) onAnswer({ values: [] }, errorSentence(reason))
      }
    }, wait)
  }
  return { ask, stop }
}

/** One variable of a template, as a field of a form. */
export interface TemplateField {
  readonly name: string
  /** Whether the value may be empty. A variable behind `?`, `&` or `;` can be left out without changing the meaning of the URI. */
  readonly isOptional: boolean
  /** Whether the variable takes several values (`{name*}`). */
  readonly isList: boolean
}

/** A template as a form: one field for each variable. */
export interface TemplateFormModel {
  readonly template: UriTemplate
  readonly fields: readonly TemplateField[]
}

/** Creates the form of a URI template. `undefined`: the template is malformed. */
export function createTemplateForm(uriTemplate: string): TemplateFormModel | undefined {
  try {
    const template = compileTemplate(uriTemplate)
    const fields = new Map<string, TemplateField>()
    for (const part of parseTemplate(uriTemplate)) {
      if (typeof part === 'string') continue
      const isOptional = ['?', '&', ';'].includes(part.operator.symbol)
      for (const { name, explode } of part.variables) {
        const field = fields.get(name)
        fields.set(name, {
          name,
          isOptional: isOptional && (field?.isOptional ?? true),
          isList: explode || (field?.isList ?? false),
        })
      }
    }
    return { template, fields: [...fields.values()] }
  } catch (error) {
    if (isResourceError(error)) return undefined
    throw error
  }
}

type FieldValues = Readonly<Record<string, string>>

/** Parses `values` of a permalink: the values of a form, by the name of the field. */
export function parseFieldValues(text: string | undefined): FieldValues {
  return Object.fromEntries(new URLSearchParams(text ?? ''))
}

export function formatFieldValues(values: FieldValues): string | undefined {
  const params = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''))
  return params.size === 0 ? undefined : params.toString()
}

export function missingFields({ fields }: TemplateFormModel, values: FieldValues): readonly string[] {
  return fields.filter(({ name, isOptional }) => !isOptional && (values[name] ?? '') === '').map(({ name }) => name)
}

/** The URI with the values so far. A list value is split at its commas. `undefined`: the template does not accept these values. */
export function uriOfForm({ template, fields }: TemplateFormModel, values: FieldValues): string | undefined {
  const hitRows = new Map<string, string | readonly string[]>()
  for (const { name, isList } of fields) {
    const value = values[name] ?? ''
    if (value === '') continue
    const members = value
      .split(',')
      .map((member) => member.trim())
      .filter((member) => member !== '')
    hitRows.set(name, isList ? members : value)
  }
  return valueOr(() => template.expand(hitRows), undefined)
}

export function otherValues(form: TemplateFormModel, values: FieldValues, name: string): ReadonlyMap<string, string> {
  return new Map(
    form.fields.flatMap((field) => {
      const value = values[field.name] ?? ''
      return field.name === name || value === '' ? [] : [[field.name, value] as const]
    }),
  )
}
