import { createWords } from '../words/texts.ts'

export const t = createWords({
  listChanged: [
    'The list has changed: {count} new or changed {count:resource|resources}.',
    '一覧が更新されました。新規または変更: {count} 件',
  ],
})
