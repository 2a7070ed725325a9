// A heap of mirrors and glass over a chequered floor; Side is the number of balls along an edge.
#version 3.7;
global_settings { assumed_gamma 1.0 max_trace_level 4 }
camera { location <Side * 1.1, Side * 0.9, -Side * 1.4> look_at <Side / 2, Side / 3, Side / 2> }
light_source { <20, 40, -30> color rgb 1 }
light_source { <-30, 30, -10> color rgb 0.5 area_light <4, 0, 0>, <0, 4, 0>, 3, 3 }
plane { y, -0.6 pigment { checker color rgb 0.9 color rgb <0.1, 0.2, 0.4> } finish { reflection 0.1 } }
#declare X = 0;
#while (X < Side)
  #declare Y = 0;
  #while (Y < Side)
    #declare Z = 0;
    #while (Z < Side)
      sphere { <X, Y, Z>, 0.4
        pigment { color rgbf <X / Side, Y / Side, Z / Side, mod(X + Y + Z, 2) * 0.7> }
        finish { specular 0.6 reflection 0.25 } interior { ior 1.3 } }
      #declare Z = Z + 1;
    #end
    #declare Y = Y + 1;
  #end
  #declare X = X + 1;
#end
