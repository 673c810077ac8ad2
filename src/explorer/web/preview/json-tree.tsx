import './data.css'
import { useMemo, useState } from 'preact/hooks'
import { langOf, shown } from '../words/texts.ts'
import { copyText, VirtualRows } from './controls.tsx'
import { isOpenAtFirst, type JsonRow, jsonRows, maxShown } from './model/json-rows.ts'
import { t } from './words.ts'

type Rule = { readonly all?: boolean; readonly places: ReadonlyMap<string, boolean> }

/** A JSON value as a tree (ARIA tree pattern). */
export function JsonTree({ value }: { readonly value: unknown }) {
  const [rule, setRule] = useState<Rule>({ places: new Map() })
  const [active, setActive] = useState(0)
  const rows = useMemo(() => {
    return jsonRows(value, (row, count) => rule.places.get(row.pointer) ?? rule.all ?? isOpenAtFirst(row, count))
  }, [value, rule])
  const row = rows[Math.min(active, rows.length - 1)]
  const setOpen = ({ pointer }: JsonRow, isOpen: boolean) =>
    setRule({ ...rule, places: new Map(rule.places).set(pointer, isOpen) })
  const setAll = (all: boolean) => {
    setActive(0)
    setRule({ all, places: all ? new Map() : new Map([['', true]]) })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (row === undefined || event.isComposing) return
    const done = act(event.key, { rows, active: Math.min(active, rows.length - 1), row, setActive, setOpen })
    if (done) event.preventDefault()
  }
  return (
    <div class="json">
      <div class="preview-bar thin" role="toolbar" aria-label={t('tree')}>
        <button type="button" class="button" onClick={() => setAll(true)}>
          {t('expandAll')}
        </button>
        <button type="button" class="button" onClick={() => setAll(false)}>
          {t('collapseAll')}
        </button>
        <code class="pointer">{shown(row?.pointer ?? '')}</code>
        <span class="spring" />
        <button type="button" class="button" onClick={() => void copyText(row?.pointer ?? '')}>
          {t('copyPointer')}
        </button>
        <button type="button" class="button" onClick={() => void copyText(textAt(value, row?.pointer ?? ''))}>
          {t('copyValue')}
        </button>
      </div>
      {rows.length >= maxShown ? <p class="preview-banner">{t('shortened')}</p> : null}
      <VirtualRows
        class="json-rows"
        role="tree"
        tabIndex={0}
        aria-label={t('jsonLabel')}
        aria-activedescendant={`json-${Math.min(active, rows.length - 1)}`}
        onKeyDown={onKeyDown}
        count={rows.length}
        active={active}
        row={(index) => {
          const one = rows[index]
          if (one === undefined) return null
          const open = () => {
            setActive(index)
            if (one.count !== undefined) setOpen(one, !one.isOpen)
          }
          return <Row key={one.pointer} row={one} index={index} isActive={index === active} onClick={open} />
        }}
      />
    </div>
  )
}

interface RowProps {
  readonly row: JsonRow
  readonly index: number
  readonly isActive: boolean
  readonly onClick: () => void
}

function Row({ row, index, isActive, onClick }: RowProps) {
  const { depth, name, isIndex, kind, text, count, isOpen } = row
  const isNest = kind === 'object' || kind === 'array'
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    <div
      id={`json-${index}`}
      role="treeitem"
      tabIndex={-1}
      aria-level={depth + 1}
      aria-posinset={row.place}
      aria-setsize={row.siblings}
      aria-selected={isActive}
      {...(count === undefined ? {} : { 'aria-expanded': isOpen })}
      class={`json-row ${isActive ? 'active' : ''}`}
      style={{ paddingLeft: `${8 + depth * 18}px` }}
      onClick={onClick}
    >
      <span class="twist" aria-hidden="true">
        {count === undefined ? '' : isOpen ? '▾' : '▸'}
      </span>
      {name === undefined ? null : (
        <span class={isIndex ? 'quiet' : 'json-name'}>
          <bdi>{shown(name)}</bdi>:{' '}
        </span>
      )}
      {count === undefined ? null : <span class="quiet">{kind === 'array' ? `[${count}] ` : `{${count}} `}</span>}
      {isNest && isOpen ? null : (
        <bdi class={isNest ? 'quiet' : `json-${kind}`} lang={langOf(text)}>
          {shown(text)}
        </bdi>
      )}
    </div>
  )
}

interface Acting {
  readonly rows: readonly JsonRow[]
  readonly active: number
  readonly row: JsonRow
  readonly setActive: (index: number) => void
  readonly setOpen: (row: JsonRow, isOpen: boolean) => void
}

/** Applies a key to a tree. Returns whether it has an effect. */
function act(key: string, { rows, active, row, setActive, setOpen }: Acting): boolean {
  const to = (index: number) => {
    setActive(Math.max(0, Math.min(rows.length - 1, index)))
    return true
  }
  const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }
  const step = steps[key]
  if (step !== undefined) return to(active + step)
  if (key === 'Home') return to(0)
  if (key === 'End') return to(rows.length - 1)
  if (key === 'ArrowRight') {
    if (row.count === undefined) return false
    if (row.isOpen) return to(active + 1)
    setOpen(row, true)
    return true
  }
  if (key === 'ArrowLeft') {
    if (row.isOpen) {
      setOpen(row, false)
      return true
    }
    for (let index = active - 1; index >= 0; index--) if ((rows[index]?.depth ?? 0) < row.depth) return to(index)
    return false
  }
  if ((key === 'Enter' || key === ' ') && row.count !== undefined) {
    setOpen(row, !row.isOpen)
    return true
  }
  return false
}

function textAt(value: unknown, pointer: string): string {
  const steps = pointer.split('/').slice(1)
  const found = steps.reduce<unknown>((at, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    return typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined
  }, value)
  return typeof found === 'string' ? found : (JSON.stringify(found, null, 2) ?? '')
}
