import { useState } from 'preact/hooks'
import { estimateTokens, type PlannedItem } from '../../../browse/basket.ts'
import { breadcrumbsOf } from '../listing/browse.ts'
import { Button } from '../shell/fields.tsx'
import { Icon } from '../shell/icons.tsx'
import { escapeInvisible, formatNumber } from '../words/texts.ts'
import { BasketItemRow } from './parts.tsx'
import { removeItems } from './picked.ts'
import { t } from './words.ts'

/** Items of one folder that follow each other in the basket. */
interface ItemGroup {
  /** The URI of the folder, with `/` at its end. */
  readonly folder: string
  readonly items: readonly PlannedItem[]
  /** Position of the first item in the basket. */
  readonly start: number
}

export function groupByFolder(items: readonly PlannedItem[]): readonly ItemGroup[] {
  const groups: { folder: string; items: PlannedItem[]; start: number }[] = []
  for (const [start, item] of items.entries()) {
    const path = item.resource.uri.replace(/[?#].*$/s, '')
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    const last = groups.at(-1)
    if (last?.folder === folder) last.items.push(item)
    else groups.push({ folder, items: [item], start })
  }
  return groups
}

const maxOpen = 50

/** The items of the basket. Items of one folder that follow each other have a head with their number and their tokens. */
export function BasketItemList({ items }: { readonly items: readonly PlannedItem[] }) {
  return (
    <ol class="basket-items">
      {groupByFolder(items).map((group) =>
        group.items.length === 1 ? (
          <GroupItems key={group.items[0]?.resource.uri} group={group} all={items.length} />
        ) : (
          <Group key={`${group.folder} ${group.items[0]?.resource.uri}`} group={group} all={items.length} />
        ),
      )}
    </ol>
  )
}

interface GroupProps {
  readonly group: ItemGroup
  readonly all: number
}

function GroupItems({ group: { items, start }, all }: GroupProps) {
  return items.map((item, at) => (
    <BasketItemRow key={item.resource.uri} item={item} isFirst={start + at === 0} isLast={start + at === all - 1} />
  ))
}

function Group({ group, all }: GroupProps) {
  const { folder, items } = group
  const [isOpen, setOpen] = useState(items.length <= maxOpen)
  const name = breadcrumbsOf(folder)
    .map(({ label }) => escapeInvisible(label))
    .join(' › ')
  const isCounted = items.every(({ tokens }) => tokens !== undefined)
  const sum = items.reduce((total, { tokens, resource }) => total + (tokens ?? estimateTokens(resource) ?? 0), 0)
  return (
    <li class="basket-group">
      <div class="basket-group-head">
        <button type="button" class="basket-group-open" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name={isOpen ? 'down' : 'right'} />
          <Icon name="folder" />
          <bdi class="one-line" title={escapeInvisible(folder)}>
            {name}
          </bdi>
          <span class="basket-group-count">{t('items', { count: items.length })}</span>
        </button>
        <span class="basket-tokens">{`${isCounted ? '' : '~'}${formatNumber(sum)}`}</span>
        <Button
          name={t('removeGroup', { count: items.length, name })}
          icon="close"
          class="button-icon"
          onClick={() => removeItems(items.map(({ resource }) => resource.uri))}
        />
      </div>
      {isOpen ? (
        <ol class="basket-items">
          <GroupItems group={group} all={all} />
        </ol>
      ) : null}
    </li>
  )
}
