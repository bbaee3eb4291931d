# The picture of docs/searches.md, from what bench_interval wrote:
#   gnuplot -e "folder='bench'; picture='docs/repeating-bubble.svg'" bench/interval.gp
set terminal svg size 1080,360 font 'Arial,12' background rgb 'white'
set output picture
rows = folder.'/interval.csv'
set datafile separator ','
set multiplot layout 1,3
set grid ytics lc rgb '#dcdcdc'
set key top left Left reverse samplen 2
set yrange [0:0.7]
set format y '%.1f'
set style line 1 lc rgb '#d55e00' lw 2 pt 7 ps 0.5
set style line 2 lc rgb '#0072b2' lw 2 pt 5 ps 0.5
set style line 3 lc rgb '#56b4e9' lw 2 pt 9 ps 0.6
set style line 4 lc rgb '#009e73' lw 2 pt 13 ps 0.6
set style line 5 lc rgb '#e69f00' lw 2 pt 11 ps 0.6
set style line 6 lc rgb '#444444' dt 2
of(panel, whose) = sprintf("< awk -F, '$1 == \"%s\" && $3 == \"%s\"' %s", panel, whose, rows)
array whose[6] = ['published', 'ours+0', 'ours+1', 'ours+2', 'ours+3', 'bound']
array words[6] = ['V-Min, published', 'ours, its memory', 'ours, a chunk more', 'ours, two more', 'ours, three more', 'bound, its memory']

set title 'Share of the interval that is idle, W = F'
set xlabel 'B / F'
plot for [i=1:6] of('backward', whose[i]) using 2:4 with linespoints ls i title words[i]
set title 'The same, F = B = W'
set xlabel 'time of a transfer / F'
set key off
plot for [i=1:6] of('transfer', whose[i]) using 2:4 with linespoints ls i

set title 'Chunks with which nothing idles (V-Min: 8)'
set xlabel 'B / F'
set ylabel 'W / F' offset 1
set xrange [0:3.1]
set yrange [0:3.1]
set format y '%.1f'
unset grid
set key on outside right top title 'chunks' samplen 0.5
array colours[8] = [0x000000, 0x0072b2, 0x56b4e9, 0x009e73, 0xc4ad00, 0xe69f00, 0xd55e00, 0xcc79a7]
map = folder.'/least_memory.csv'
cells(n) = sprintf("< awk -F, '$1 == \"map\" && $9 == %d' %s", n, map)
plot for [n=6:13] cells(n) using 4:5 with points pt 5 ps 0.75 lc rgb colours[n - 5] title sprintf('%d', n)
unset multiplot
