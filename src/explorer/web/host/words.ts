import { createWords } from '../words/language.ts'

/** Words of the page inside of a host. */
export const t = createWords(
  {
    hint: 'Choose something on the left to look at it. What you put into the basket becomes known to the conversation.',
    fullscreen: 'Use the whole window',
    inline: 'Back into the conversation',
  },
  {
    hint: '左から選ぶと、ここに表示されます。バスケットに入れたものは会話に伝わります。',
    fullscreen: 'ウィンドウ全体に表示',
    inline: '会話の中に戻す',
  },
)
