# A surface in colours, sampled finely.
set terminal pngcairo size 900,700
set output "surface.png"
set isosamples 220
set samples 220
set pm3d
splot [-6:6] [-6:6] sin(sqrt(x*x + y*y)) / (0.3 + sqrt(x*x + y*y)) + 0.2*cos(3*x)*sin(2*y) with pm3d
